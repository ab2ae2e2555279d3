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
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.options import data_option, log, out_option, plot_option
from benchmarks.plots import Mean, draw_groups, new_figure, save_plot
from benchmarks.prepare import label_of
from benchmarks.program import origin_of, task
from benchmarks.record_file import RESULTS, write_record
from benchmarks.sections.faceted import (
    FOLDS,
    FacetTask,
    Ranking,
    average_precision,
    candidate_scores,
    largest_pair_shares,
    open_facets,
    pool_ndcg,
    read_labelled,
    require_scikit_learn,
    tied_ndcg,
)
from benchmarks.sections.records import FacetsRecord
from benchmarks.sections.subcorpus import index_documents
from benchmarks.significance import bootstrap_interval, randomization_p
from engine import Index, Scoring, load_encoder
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

ALL = "all"
_SHOWN = "nDCG@20"
_OTHERS = ("nDCG@10", "nDCG%20", "MAP")
_NOTE = (
    "nDCG@10 and nDCG@20 with the gain 2^relevance - 1 over the pooled candidates; nDCG%20, over a fifth of the pool "
    "with the relevance as gain, and MAP, from relevance 2 on, as the authors compute them; equal scores share what "
    "is gained. The mean of the authors' two test folds, nDCG@20 also by fold, with a bootstrap interval. No setting "
    "was chosen on this set. Score 0: candidates of which a ranking says nothing. p: two-sided paired randomisation "
    "test of nDCG@20, adjusted after Holm over the rankings of a facet. An abstract that is asked with in several "
    "facets is drawn, or swapped, with all of them."
)
_LARGEST_NOTE = (
    "Share of hits among the candidates whose largest pair starts in the facet's section, by relevance, and the share "
    "of that section in the weights of the query. p: the same test over the queries that have both, adjusted after "
    "Holm over each column."
)


def facets_table(records: Sequence[FacetsRecord]) -> str:
    """For each encoder the rankings of each facet, then how often the largest pair starts where it should."""
    tests = ["p, evidence", "p, document"]
    head = ["Encoder", "Facet (queries)", "Ranked by", *_OTHERS, "nDCG@20 [95 %]", "Folds", "Score 0", *tests]
    rows = [row for record in records for facet in (*record.query_ids, ALL) for row in _rows(record, facet)]
    largest_head = ["Encoder", "Facet", "Relevant", "Irrelevant", "By chance", "p, irrelevant", "p, chance"]
    largest = [row for record in records for row in _largest_rows(record)]
    tables = [*markdown(head, rows), "", _NOTE, "", *markdown(largest_head, largest), "", _LARGEST_NOTE]
    return "\n".join([*tables, "", *origins(records)])


def _values(record: FacetsRecord, metric: str, facet: str, ranking: str) -> list[float]:
    facets = record.query_ids if facet == ALL else [facet]
    return [value for name in facets for value in record.per_query[metric][name][ranking]]


def _queries(record: FacetsRecord, facet: str) -> list[str]:
    """The document that each query is, one of which may stand in several facets."""
    return [query for name in (record.query_ids if facet == ALL else [facet]) for query in record.query_ids[name]]


def _folds(record: FacetsRecord, facet: str) -> list[int]:
    return [fold for name in (record.query_ids if facet == ALL else [facet]) for fold in record.folds[name]]


def _label(record: FacetsRecord) -> str:
    return record.encoder.partition("@")[0]


def fold_means(values: Sequence[float], folds: Sequence[int]) -> list[float]:
    """The mean of each fold's queries; a fold without a query is left out."""
    return [
        float(np.mean([value for value, own in zip(values, folds, strict=True) if own == fold]))
        for fold in FOLDS
        if fold in folds
    ]


def _rows(record: FacetsRecord, facet: str) -> list[list[str]]:
    values = {ranking: _values(record, _SHOWN, facet, ranking) for ranking in Ranking}
    folds, queries, seed = _folds(record, facet), _queries(record, facet), record.origin.seed

    def p(own: Ranking, rival: Ranking) -> float | None:
        return None if own is rival else randomization_p(values[own], values[rival], groups=queries, seed=seed)

    columns = [p_cells([p(own, rival) for own in Ranking]) for rival in (Ranking.EVIDENCE, Ranking.DOCUMENT)]
    rows = []
    for ranking, *cells in zip(Ranking, *columns, strict=True):
        low, high = bootstrap_interval(values[ranking], groups=queries, seed=seed)
        by_fold = fold_means(values[ranking], folds)
        shares = [record.zero_shares[name][ranking] for name in record.query_ids if facet in (name, ALL)]
        rows.append(
            [
                _label(record),
                f"{facet} ({len(folds)})" + (", quick" if record.is_quick else ""),
                ranking.value,
                *(f"{np.mean(fold_means(_values(record, name, facet, ranking), folds)):.3f}" for name in _OTHERS),
                f"{np.mean(by_fold):.3f} [{low:.3f}, {high:.3f}]",
                " / ".join(f"{mean:.3f}" for mean in by_fold),
                f"{np.mean(shares):.0%}",
                *cells,
            ]
        )
    return rows


def _largest_rows(record: FacetsRecord) -> list[list[str]]:
    columns = [
        p_cells([_largest_p(record, facet, rival) for facet in record.query_ids])
        for rival in ("irrelevant", "by chance")
    ]
    rows = []
    for facet, *p_values in zip(record.query_ids, *columns, strict=True):
        shares = (record.largest_pair[facet][kind] for kind in ("relevant", "irrelevant", "by chance"))
        known = [[share for share in column if share is not None] for column in shares]
        cells = [f"{np.mean(column):.3f} ({len(column)})" if column else "none" for column in known]
        rows.append([_label(record), facet, *cells, *p_values])
    return rows


def _largest_p(record: FacetsRecord, facet: str, rival: str) -> float:
    own, other = record.largest_pair[facet]["relevant"], record.largest_pair[facet][rival]
    both = [(a, b) for a, b in zip(own, other, strict=True) if a is not None and b is not None]
    return randomization_p([a for a, _ in both], [b for _, b in both], seed=record.origin.seed)


def draw_facets(record: FacetsRecord, folder: Path) -> tuple[Path, Path]:
    """Draw nDCG@20 of each ranking, with intervals, facet by facet; returns the PNG and the SVG.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    figure, axes = new_figure(f"Candidates of a facet, {_label(record)}", "facet", _SHOWN)
    facets = [*record.query_ids, ALL]
    series = {ranking.value: [_mean(record, facet, ranking) for facet in facets] for ranking in Ranking}
    draw_groups(axes, facets, series)
    return save_plot(figure, folder / record.name)


def _mean(record: FacetsRecord, facet: str, ranking: Ranking) -> Mean:
    values = _values(record, _SHOWN, facet, ranking)
    mean = float(np.mean(fold_means(values, _folds(record, facet))))
    return Mean(mean, bootstrap_interval(values, groups=_queries(record, facet), seed=record.origin.seed))


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
        metric: {one.facet: defaultdict(list) for one in tasks} for metric in METRICS
    }
    zeros: dict[str, dict[str, list[float]]] = {one.facet: defaultdict(list) for one in tasks}
    largest: dict[str, dict[str, list[float | None]]] = {one.facet: defaultdict(list) for one in tasks}
    for one in tasks:
        for query, relevance in one.qrels.items():
            result = index.search_id(query, k=index.n_documents, exact=True)
            for ranking, scores in candidate_scores(index, result, one.facet, relevance.keys()).items():
                zeros[one.facet][ranking.value].append(float(np.mean([score == 0 for score in scores.values()])))
                for metric, measured in METRICS.items():
                    per_query[metric][one.facet][ranking.value].append(round(measured(relevance, scores), 4))
            for kind, share in largest_pair_shares(index, result, one.facet, relevance).items():
                largest[one.facet][kind].append(share if share is None else round(share, 4))
    return FacetsRecord(
        datasets={one.facet: one.dataset for one in tasks},
        encoder=encoder,
        settings=asdict(Scoring()),
        is_quick=is_quick,
        n_documents=index.n_documents,
        query_ids={one.facet: list(one.qrels) for one in tasks},
        folds={one.facet: [one.folds[query] for query in one.qrels] for one in tasks},
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


@task
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
        python -m benchmarks run facets csfcube --encoder all-MiniLM-L6-v2
    """
    origin = origin_of(context, seed)
    place = Path(folder) if Path(folder).is_dir() else data / folder
    record = run(place, encoder, origin, is_quick=quick)
    if target := out or (None if quick else RESULTS):
        write_record(record, target)
    click.echo(facets_table([record]))
    if plot_out:
        draw_facets(record, plot_out)
