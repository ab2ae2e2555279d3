"""Measures whether the section of the queried facet carries the match: nDCG by parts of the score; writes a record."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.options import data_option, log, out_option, plot_option
from benchmarks.prepare import label_of
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.facet_rankings import candidate_scores, largest_pair_shares
from benchmarks.sections.facet_report import draw_facets, facets_table
from benchmarks.sections.faceted import FOLDS, FacetTask, open_facets, read_labelled
from benchmarks.sections.pool_measures import average_precision, pool_ndcg
from benchmarks.sections.records import FacetsRecord
from benchmarks.sections.subcorpus import index_documents
from benchmarks.sections.tied_ndcg import require_scikit_learn, tied_ndcg
from engine import Index, Scoring, load_encoder
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

Measure: TypeAlias = Callable[[Mapping[str, int], Mapping[str, float]], float]  # of relevance and scores of a pool
METRICS: Mapping[str, Measure] = {
    "nDCG@10": partial(tied_ndcg, k=10),
    "nDCG@20": partial(tied_ndcg, k=20),
    "nDCG%20": pool_ndcg,
    "MAP": average_precision,
}
QUICK_QUERIES = 1  # of each facet and fold
QUICK_CANDIDATES = 40  # of a query


def measure(index: Index, tasks: Sequence[FacetTask], encoder: str, origin: Origin, *, is_quick: bool) -> FacetsRecord:
    """Ask every query of every facet once, and judge all rankings of its candidates.

    Only the candidates of a query are ranked, as by the authors of the set.

    Args:
        index: holds all queries and candidates, built of `read_labelled`.
        tasks: a facet each.
        encoder: of the index, as name@fingerprint.
        origin: of the record.
        is_quick: whether `tasks` are a part only.
    """
    per_query: dict[str, dict[str, dict[str, list[float]]]] = {
        metric: {task.facet: defaultdict(list) for task in tasks} for metric in METRICS
    }
    zeros: dict[str, dict[str, list[float]]] = {task.facet: defaultdict(list) for task in tasks}
    largest: dict[str, dict[str, list[float | None]]] = {task.facet: defaultdict(list) for task in tasks}
    for task in tasks:
        for query, relevance in task.qrels.items():
            result = index.search_id(query, k=index.n_documents, exact=True)
            for ranking, scores in candidate_scores(index, result, task.facet, relevance.keys()).items():
                zeros[task.facet][ranking.value].append(float(np.mean([score == 0 for score in scores.values()])))
                for metric, measured in METRICS.items():
                    per_query[metric][task.facet][ranking.value].append(round(measured(relevance, scores), 4))
            for kind, share in largest_pair_shares(index, result, task.facet, relevance).items():
                largest[task.facet][kind].append(share if share is None else round(share, 4))
    return FacetsRecord(
        datasets={task.facet: task.dataset for task in tasks},
        encoder=encoder,
        settings=asdict(Scoring()),
        is_quick=is_quick,
        n_documents=index.n_documents,
        query_ids={task.facet: list(task.qrels) for task in tasks},
        folds={task.facet: [task.folds[query] for query in task.qrels] for task in tasks},
        per_query={name: {facet: dict(values) for facet, values in by.items()} for name, by in per_query.items()},
        zero_shares={
            facet: {name: round(float(np.mean(shares)), 4) for name, shares in by.items()}
            for facet, by in zeros.items()
        },
        largest_pair={facet: dict(by) for facet, by in largest.items()},
        origin=origin,
    )


def quick_part(tasks: Sequence[FacetTask], seed: int) -> list[FacetTask]:
    """A seeded part: a query of each facet and fold, with 40 candidates, half of them relevant at most."""
    rng = np.random.default_rng(seed)
    return [_quick_part(task, rng) for task in tasks]


def _quick_part(task: FacetTask, rng: np.random.Generator) -> FacetTask:
    qrels = {}
    for fold in FOLDS:
        of_fold = [query for query in task.qrels if task.folds[query] == fold]
        for query in [of_fold[number] for number in rng.permutation(len(of_fold))[:QUICK_QUERIES]]:
            judged = list(task.qrels[query].items())
            shuffled = [judged[number] for number in rng.permutation(len(judged))]
            best_first = sorted(shuffled, key=lambda item: -item[1])
            relevant = [item for item in best_first if item[1] > 0][: QUICK_CANDIDATES // 2]
            others = [item for item in best_first if item[1] == 0][: QUICK_CANDIDATES - len(relevant)]
            qrels[query] = dict(relevant + others)
    return FacetTask(task.facet, task.dataset, task.corpus, qrels, task.folds)


def run(folder: Path, encoder_name: str, origin: Origin, *, is_quick: bool) -> FacetsRecord:
    """Index the faceted corpus in a folder that is thrown away, and measure.

    Raises:
        EngineError: data or encoder cannot be read, or scikit-learn is not installed.
    """
    require_scikit_learn()
    tasks = open_facets(folder)
    if is_quick:
        tasks = quick_part(tasks, origin.seed)
    wanted = {name for task in tasks for query, judged in task.qrels.items() for name in (query, *judged)}
    documents = [document for document in read_labelled(tasks[0].corpus) if not is_quick or document.doc_id in wanted]
    if absent := wanted - {document.doc_id for document in documents}:
        raise DatasetError(
            f"{min(absent)!r} is judged but not in {tasks[0].corpus}, like {len(absent)} of {len(wanted)} queries and "
            "candidates; fetch corpus and judgments of one version"
        )
    encoder = load_encoder(encoder_name)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "facets.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            return measure(index, tasks, label_of(encoder.name, encoder.fingerprint), origin, is_quick=is_quick)


@program
@click.argument("folder", default="csfcube")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Name or folder of an encoder.")
@click.option("--seed", default=0, show_default=True, help="Of the quick part, the tests and the intervals.")
@click.option("--quick", is_flag=True, help="A query of each facet and fold; no record unless --out is given.")
@data_option
@out_option
@plot_option
@click.pass_context
def main(
    context: click.Context,
    folder: str,
    encoder: str,
    seed: int,
    quick: bool,
    data: Path,
    out: Path | None,
    plot_out: Path | None,
) -> None:
    """Measure, on the faceted corpus in FOLDER, which part of a score ranks the candidates of a facet best.

    FOLDER is a path, or the name of a folder in --data. The corpus is indexed anew, in a temporary folder.

    \b
    Example:
        python -m benchmarks study facets csfcube --encoder all-MiniLM-L6-v2
    """
    origin = origin_of(context, seed)
    place = Path(folder) if Path(folder).is_dir() else data / folder
    record = run(place, encoder, origin, is_quick=quick)
    if target := out or (None if quick else RESULTS):
        write_record(record, target)
    click.echo(facets_table([record]))
    if plot_out:
        draw_facets(record, plot_out)
