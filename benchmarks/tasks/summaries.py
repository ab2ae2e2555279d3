"""Measures how well systems find, by the human summary of a paper, that paper, the papers that cite it, or citances.

Questions and data are from `benchmarks.scisumm`: a retrieval task with a pool of candidates for each query. Any encoder
can rank by the cosine of document vectors, or by evidence.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import DatasetError, open_dataset
from benchmarks.lexical import LEXICAL, fitted
from benchmarks.metrics import evaluate_named
from benchmarks.program import Measurement, log, measurement, names_of, task
from benchmarks.runs import Case, Run
from benchmarks.scisumm import (
    FEW,
    NAME,
    TASKS,
    CandidateRanker,
    Collection,
    Question,
    Scisumm,
    SummaryTask,
    open_scisumm,
    read_collection,
)
from benchmarks.systems import BuildCost, DocumentCosine, Evidence, System, training_pairs
from benchmarks.tables.quality import SummaryDetails, summary_table
from engine.encoders.files import MINILM_NAME
from engine.machine import Origin

OF_ENCODER = ("evidence", "document")
SYSTEMS = (*OF_ENCODER, *LEXICAL)


@dataclass(frozen=True)
class SummaryTrial:
    """The data that is equal for every system."""

    name: str  # of the task
    task: SummaryTask
    data: Scisumm
    depth: int  # of a search that finds everything: all of the collection, and summaries, which some systems also fit
    draws: Sequence[Sequence[Question]]  # each with the same summaries
    origin: Origin


def make_trial(name: str, data: Scisumm, n_draws: int, origin: Origin) -> SummaryTrial:
    """Draw the questions of a task."""
    asked = TASKS[name]
    pool = asked.pool(data)
    seeds = np.random.SeedSequence(origin.seed).spawn(n_draws)
    draws = [asked.ask(data, pool, np.random.default_rng(seed)) for seed in seeds]
    if not draws[0]:
        raise DatasetError(
            f"no summary of split {data.split!r} can be used in {name}; "
            f"take another one: --split {asked.split}, cl2017all, cl2018train or cl2018test"
        )
    depth = sum(1 for _ in read_collection(data, asked.collection)) + len(data.summaries)
    return SummaryTrial(name, asked, data, depth, draws, origin)


def measure(system: System, cost: BuildCost, trial: SummaryTrial, *, is_trained_on_it: bool = False) -> Run:
    """Rank the candidates of every question and judge the rankings, draw by draw."""
    ranker = CandidateRanker(system, trial.data.summaries, trial.depth)
    started = time.perf_counter()
    rankings = [{question.query_id: ranker.rank(question) for question in draw} for draw in trial.draws]
    seconds = time.perf_counter() - started
    measures = trial.task.measures
    judged = [
        evaluate_named(measures, {question.query_id: question.relevant for question in draw}, ranked)
        for draw, ranked in zip(trial.draws, rankings, strict=True)
    ]
    means = {name: [statistics.mean(values[name].values()) for values in judged] for name in measures}
    questions = [question for draw in trial.draws for question in draw]
    details = SummaryDetails(
        name=trial.name,
        is_trained_on_it=is_trained_on_it,
        n_candidates=round(statistics.mean(len(question.candidates) for question in questions), 1),
        n_draws=len(trial.draws),
        deviations={name: round(statistics.stdev(values), 4) for name, values in means.items() if len(values) > 1},
    )
    return Run(
        task="summaries",
        dataset=f"{NAME}@{trial.data.checksum}",
        system=system.name,
        encoder=system.encoder,
        settings=system.settings,
        variant="-".join(filter(None, (trial.name, "exact" if system.settings.get("exact") else ""))),
        split=trial.data.split,
        fit_seconds=cost.seconds,
        n_tokens=cost.n_tokens,
        seconds=round(seconds, 2),
        details=asdict(details),
        origin=trial.origin,
        cases=[
            Case(
                id=question.query_id,
                values={
                    name: round(statistics.mean(values[name][question.query_id] for values in judged), 4)
                    for name in measures
                },
                group=next(iter(trial.data.reference[question.query_id])),
            )
            for question in trial.draws[0]
        ],
    )


def prepared_systems(
    names: Sequence[str], trial: SummaryTrial, encoder: str, work: Path
) -> Iterator[tuple[System, BuildCost]]:
    """Yield the named systems one by one, each ready to search.

    The index of an encoder has the whole collection. If questions have few candidates, all documents are scored. The
    other systems are fitted only on the pool; all except BM25 also read the summaries of the split, as texts.
    """
    data, collection = trial.data, trial.task.collection
    if set(OF_ENCODER) & set(names):
        # Imported here, since lexical systems need neither torch nor FAISS.
        from benchmarks.prepare import prepared_documents, prepared_index

        with (
            # The papers are those of the retrieval task, so its index can be reused.
            prepared_index(open_dataset(NAME, data.folder.parent), encoder, work, log)
            if collection is Collection.PAPERS
            else prepared_documents(f"{collection}-{data.name}", read_collection(data, collection), encoder, work, log)
        ) as ready:
            if "evidence" in names:
                # All can be ranked if every question has at most `FEW` candidates.
                is_few = all(len(question.candidates) <= FEW for draw in trial.draws for question in draw)
                yield Evidence(ready.index, ready.encoder, exact=is_few), ready.cost
            if "document" in names:
                yield DocumentCosine(ready.index, ready.encoder), ready.cost
    wanted = frozenset(trial.task.pool(data))
    for name in names:
        if name not in OF_ENCODER:
            documents = (document for document in read_collection(data, collection) if document.doc_id in wanted)
            # TF-IDF scores only documents that it was fitted on, so summaries are fitted too.
            yield fitted(name, documents if name == "bm25" else chain(documents, data.summaries.values()))


@task
@click.argument("name", metavar="QUESTION", type=click.Choice(list(TASKS)))
@click.option("--encoder", default=MINILM_NAME, help="Encoder of the systems evidence and document.")
@click.option("--split", default="", help="Split to search with; by default that of the task's protocol.")
@click.option(
    "--systems",
    default="evidence,document,bm25,tfidf",
    callback=names_of(SYSTEMS),
    help=f"Systems, separated by commas, of {', '.join(SYSTEMS)}.",
)
@measurement(seed="Seed of candidates and of intervals.", encodes=True)
def main(call: Measurement, name: str, encoder: str, split: str, systems: tuple[str, ...]) -> None:
    """Rank papers for the human summaries of CL-SciSumm, a run for each system.

    reference-topic and citing-drawn are the tasks of TDE; reference, citing, citances and citances-split
    rank whole collections.

    \b
    Example:
        python -m benchmarks run summaries citing-drawn --encoder all-MiniLM-L6-v2
    """
    asked = TASKS[name]
    dataset = open_scisumm(split or asked.split, call.data)
    trial = make_trial(name, dataset, asked.n_draws, call.origin)
    is_trained = bool(set(OF_ENCODER) & set(systems)) and training_pairs(encoder).get(NAME, 0) > 0
    runs = []
    for system, cost in prepared_systems(systems, trial, encoder, call.work):
        log(f"{name}, {dataset.split}: {len(trial.draws[0])} summaries to {system.name}")
        runs.append(measure(system, cost, trial, is_trained_on_it=is_trained and system.name in OF_ENCODER))
        call.keep(runs[-1])
    click.echo(summary_table(runs))
