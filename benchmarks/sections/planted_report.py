"""Whether planted passages are found and named, as table and plots; drawn from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.plots import new_figure, save_plot
from benchmarks.sections.grouped_plot import Mean, draw_groups
from benchmarks.sections.hosts import LENGTHS
from benchmarks.sections.planting import Damage, Position
from benchmarks.sections.records import PlantedRecord
from benchmarks.significance import bootstrap_interval, randomization_p

_GROUPS = {"damage": tuple(Damage), "position": tuple(Position), "length": LENGTHS}
_NOTE = (
    "The query is the document that a section was taken from; the host holds that section, damaged by leaving out "
    "words or by shuffling sentences, and then without its heading, and shares as few rare words with the query as "
    "could be found. Rank of the host among all documents: share of plantings where it is 1, or at most 10, and the "
    "median; the first row of each corpus is the host before planting. Named first: the largest pair is the planted "
    "section and the one that it was taken from. IoU, precision and recall: characters of that pair's spans against "
    "those of the passage; hosts below rank 100 count as not named. With a bootstrap interval over pairs of query and "
    "host. p: two-sided paired randomisation test of 1/rank over these pairs, evidence against the document vector, "
    "adjusted after Holm over the rows of a corpus."
)


def planted_table(records: Sequence[PlantedRecord]) -> str:
    """Rows for each corpus: before planting, then by damage, by position and by length of the host."""
    evidence = ["Rank 1", "Rank <= 10 [95 %]", "Median"]
    document = [f"{cell}, document" for cell in ("Rank 1", "Rank <= 10", "Median")]
    head = ["Corpus (pairs)", "Encoder", "Plantings", *evidence, *document, "p"]
    rows = [row for record in records for row in _rows(record)]
    named = ["Named first [95 %]", "IoU", "Precision", "Recall"]
    return "\n".join([*markdown([*head, *named], rows), "", _NOTE, "", *origins(records)])


def _rows(record: PlantedRecord) -> list[list[str]]:
    cases = [(name, value, _is(record, name, value)) for name, values in _GROUPS.items() for value in values]
    before = np.ones(len(record.plantings["rank"]), bool)
    tested = [_p(record, "rank_before", "document_rank_before", before)]
    tested += [_p(record, "rank", "document_rank", chosen) for _, _, chosen in cases]
    p_values = p_cells(tested)
    corpus = f"{record.task} ({record.n_pairs})" + (", quick" if record.is_quick else "")
    place = [corpus, record.encoder.partition("@")[0]]
    ranks = [*_found(record, "rank_before", before), *_found(record, "document_rank_before", before, with_ends=False)]
    rows = [[*place, "before planting", *ranks, p_values[0], "", "", "", ""]]
    for (name, value, chosen), p in zip(cases, p_values[1:], strict=True):
        ranks = [*_found(record, "rank", chosen), *_found(record, "document_rank", chosen, with_ends=False)]
        rows.append([*place, f"{name}: {_label(record, value)}", *ranks, p, *_named(record, chosen)])
    return rows


def _label(record: PlantedRecord, value: str) -> str:
    if value not in record.host_words:
        return value
    low, high = record.host_words[value]
    return f"{value}, {low:,} to {high:,} words"


def _is(record: PlantedRecord, column: str, value: str) -> NDArray[np.bool_]:
    return np.array([own == value for own in record.plantings[column]])


def _column(record: PlantedRecord, name: str) -> NDArray[np.float64]:
    return np.array(record.plantings[name], np.float64)


def _by_pair(record: PlantedRecord, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> list[float]:
    """Means over the chosen plantings of each query: those of one query are no independent cases."""
    by_query: dict[str | int | float, list[float]] = defaultdict(list)
    for number in np.flatnonzero(chosen).tolist():
        by_query[record.plantings["query"][number]].append(float(values[number]))
    return [float(np.mean(own)) for own in by_query.values()]


def _share(record: PlantedRecord, values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> str:
    by_pair = _by_pair(record, values, chosen)
    low, high = bootstrap_interval(by_pair, seed=record.origin.seed)
    return f"{np.mean(by_pair):.3f} [{low:.3f}, {high:.3f}]"


def _found(record: PlantedRecord, column: str, chosen: NDArray[np.bool_], *, with_ends: bool = True) -> list[str]:
    ranks = _column(record, column)
    among_ten = (ranks <= 10).astype(np.float64)
    shown = _share(record, among_ten, chosen) if with_ends else f"{among_ten[chosen].mean():.3f}"
    return [f"{np.mean(ranks[chosen] == 1):.3f}", shown, f"{np.median(ranks[chosen]):g}"]


def _named(record: PlantedRecord, chosen: NDArray[np.bool_]) -> list[str]:
    spans = [f"{_column(record, name)[chosen].mean():.3f}" for name in ("iou", "span_precision", "span_recall")]
    return [_share(record, _column(record, "is_first"), chosen), *spans]


def _p(record: PlantedRecord, column: str, rival: str, chosen: NDArray[np.bool_]) -> float:
    own, other = (_by_pair(record, 1 / _column(record, name), chosen) for name in (column, rival))
    return randomization_p(own, other, seed=record.origin.seed)


def draw_planted(record: PlantedRecord, folder: Path) -> list[Path]:
    """Draw how often hosts are found and passages named: by damage, position and length; returns PNG and SVG files.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    lines = {
        "found in the first 10, evidence": (_column(record, "rank") <= 10).astype(np.float64),
        "found in the first 10, document vector": (_column(record, "document_rank") <= 10).astype(np.float64),
        "named first": _column(record, "is_first"),
        "IoU of the spans": _column(record, "iou"),
    }
    paths: list[Path] = []
    for group, values in _GROUPS.items():
        figure, axes = new_figure(f"{record.task}: planted passages", group, "mean over plantings")
        by_line = {
            name: [_mean(_by_pair(record, column, _is(record, group, value)), record.origin.seed) for value in values]
            for name, column in lines.items()
        }
        draw_groups(axes, [str(value) for value in values], by_line)
        paths += save_plot(figure, folder / f"{record.name}-{group}")
    return paths


def _mean(by_pair: list[float], seed: int) -> Mean:
    return Mean(float(np.mean(by_pair)), bootstrap_interval(by_pair, seed=seed))
