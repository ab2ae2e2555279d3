"""How the parts of a score rank the candidates of each facet: table and plot; drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.plots import new_figure, save_plot
from benchmarks.sections.facet_rankings import Ranking
from benchmarks.sections.faceted import FOLDS
from benchmarks.sections.grouped_plot import Mean, draw_groups
from benchmarks.sections.records import FacetsRecord
from benchmarks.significance import bootstrap_interval, randomization_p

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
