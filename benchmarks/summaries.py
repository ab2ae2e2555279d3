"""Measures how well systems find, by the human summary of a paper, that paper, the papers that cite it, or citances.

Tasks and protocols are those of `benchmarks.scisumm.tasks`, the data that of
`benchmarks.scisumm.collection`. Any encoder ranks by the cosine of document vectors, or by evidence.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.options import data_option, log, names_of, out_option, work_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from benchmarks.scisumm.collection import NAME, Scisumm, open_scisumm, quick_part, read_collection
from benchmarks.scisumm.ranking import FEW, CandidateRanker
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.scisumm.systems import OF_ENCODER, SYSTEMS, prepared_systems
from benchmarks.scisumm.tables import summary_table
from benchmarks.scisumm.tasks import TASKS, Question, SummaryTask
from benchmarks.systems import BuildCost, System
from engine.encoders.backbone.weights import MINILM_NAME
from indexer.training.origin import Origin

QUICK_TOPICS = 6
QUICK_WORDS = 200
QUICK_DRAWS = 3


@dataclass(frozen=True)
class SummaryTrial:
    """What every system is asked alike."""

    name: str  # of the task
    task: SummaryTask
    data: Scisumm
    pool: Sequence[str]
    depth: int  # of a search that finds everything: the collection, and the summaries where they are fitted too
    draws: Sequence[Sequence[Question]]  # the same summaries in each
    origin: Origin

    @property
    def is_few(self) -> bool:
        """Whether no question has more candidates than can be ranked one by one."""
        return all(len(question.candidates) <= FEW for draw in self.draws for question in draw)


def make_trial(name: str, data: Scisumm, n_draws: int, origin: Origin) -> SummaryTrial:
    """Draw the questions of a task.

    Raises:
        DatasetError: the split has no summary that can be asked.
    """
    task = TASKS[name]
    pool = task.pool(data)
    seeds = np.random.SeedSequence(origin.seed).spawn(n_draws)
    draws = [task.ask(data, pool, np.random.default_rng(seed)) for seed in seeds]
    if not draws[0]:
        raise DatasetError(
            f"no summary of split {data.split!r} can be asked in {name}; "
            f"take another one: --split {task.split}, cl2017all, cl2018train or cl2018test"
        )
    depth = sum(1 for _ in read_collection(data, task.collection)) + len(data.summaries)
    return SummaryTrial(name, task, data, pool, depth, draws, origin)


def measure(system: System, cost: BuildCost, trial: SummaryTrial, *, is_trained_on_it: bool = False) -> SummaryRecord:
    """Rank the candidates of every question and judge the rankings, draw by draw.

    Args:
        system: ready to be asked.
        cost: of making it ready.
        trial: what is asked.
        is_trained_on_it: whether its encoder learned from pairs of the dataset.
    """
    from benchmarks.metrics import evaluate_named

    ranker = CandidateRanker(system, trial.data.summaries, trial.depth)
    started = time.perf_counter()
    rankings = [{question.query_id: ranker.rank(question) for question in draw} for draw in trial.draws]
    seconds = time.perf_counter() - started
    measures = trial.task.measures
    judged = [
        evaluate_named(measures, {question.query_id: question.relevant for question in draw}, ranked)
        for draw, ranked in zip(trial.draws, rankings, strict=True)
    ]
    query_ids = [question.query_id for question in trial.draws[0]]
    means = {name: [statistics.mean(values[name].values()) for values in judged] for name in measures}
    questions = [question for draw in trial.draws for question in draw]
    return SummaryRecord(
        task=trial.name,
        dataset=f"{NAME}@{trial.data.checksum}",
        split=trial.data.split,
        system=system.name,
        encoder=system.encoder,
        settings=system.settings,
        is_trained_on_it=is_trained_on_it,
        is_quick=trial.data.part is not None,
        n_queries=len(query_ids),
        n_candidates=round(statistics.mean(len(question.candidates) for question in questions), 1),
        n_draws=len(trial.draws),
        metrics={name: round(statistics.mean(values), 4) for name, values in means.items()},
        deviations={name: round(statistics.stdev(values), 4) for name, values in means.items() if len(values) > 1},
        query_ids=query_ids,
        topic_ids=[next(iter(trial.data.reference[query_id])) for query_id in query_ids],
        per_query={
            name: [round(statistics.mean(values[name][query_id] for values in judged), 4) for query_id in query_ids]
            for name in measures
        },
        search_seconds=round(seconds, 2),
        n_tokens=cost.n_tokens,
        seconds=cost.seconds,
        origin=trial.origin,
    )


@program
@click.argument("name", metavar="TASK", type=click.Choice(list(TASKS)))
@click.option(
    "--encoder",
    default=MINILM_NAME,
    show_default=True,
    help="Of the systems evidence and document; one that learned from pairs of this dataset is marked.",
)
@click.option("--split", default="", help="Whose summaries are asked; by default that of the task's protocol.")
@click.option(
    "--systems",
    default="evidence,document,bm25,tfidf",
    show_default=True,
    callback=names_of(SYSTEMS),
    help=f"Separated by commas, of {', '.join(SYSTEMS)}.",
)
@click.option("--draws", type=click.IntRange(1), help="Of candidates; 20 in citing-drawn, 1 where nothing is drawn.")
@click.option("--exact", is_flag=True, help="Exact search, instead of ANN lists.")
@click.option("--quick", is_flag=True, help="A few topics, the first words of their papers, and few draws.")
@click.option("--seed", default=0, show_default=True, help="Of candidates, of the part and of intervals.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    systems: tuple[str, ...],
    draws: int | None,
    exact: bool,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Ask with the human summaries of CL-SciSumm, and write a record for each system.

    reference-topic and citing-drawn are the tasks of TDE; reference, citing, citances and citances-split
    rank whole collections.

    \b
    Example:
        python -m benchmarks study summaries citing-drawn --encoder all-MiniLM-L6-v2
    """
    out = out or (None if quick else RESULTS)
    task = TASKS[name]
    n_draws = draws or (min(QUICK_DRAWS, task.n_draws) if quick else task.n_draws)
    dataset = open_scisumm(split or task.split, data)
    if quick:
        dataset = quick_part(dataset, QUICK_TOPICS, QUICK_WORDS, seed)
    trial = make_trial(name, dataset, n_draws, origin_of(context, seed))
    records = []
    lists = {"exact": exact, "is_few": trial.is_few}
    prepared = prepared_systems(systems, dataset, task.collection, trial.pool, encoder, work, log, **lists)
    is_trained = bool(set(OF_ENCODER) & set(systems)) and _learned_from(encoder)
    for system, cost in prepared:
        log(f"{name}, {dataset.split}: {len(trial.draws[0])} summaries to {system.name}")
        records.append(measure(system, cost, trial, is_trained_on_it=is_trained and system.name in OF_ENCODER))
        if out:
            write_record(records[-1], out)
    click.echo(summary_table(records))


def _learned_from(encoder: str) -> bool:
    # Its baselines are torch's; TF-IDF and BM25 alone need none.
    from benchmarks.model_card import training_pairs

    return training_pairs(encoder).get(NAME, 0) > 0
