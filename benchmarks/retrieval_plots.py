"""Quality and recall against time, a plot a task, drawn from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.metrics import PRIMARY
from benchmarks.plots import Curve, Point, draw_curves, draw_pareto, new_figure, save_plot
from benchmarks.quality_tables import is_without
from benchmarks.quick import SUFFIX
from benchmarks.records import RecallRecord, RetrievalRecord
from benchmarks.significance import bootstrap_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIME = "milliseconds a query, one at a time"
_SEARCH_TIME = f"{_TIME}, already encoded or fitted"


def plot_quality(records: Sequence[RetrievalRecord], folder: Path) -> list[Path]:
    """Draw nDCG@10 of each system over the time of its searches, with intervals, for each dataset.

    Records of quick parts and of encoders that were trained without a corpus are left out, and of a
    dataset those of fewer test queries than the largest set of them.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    by_task: dict[tuple[str, str], list[RetrievalRecord]] = defaultdict(list)
    for record in records:
        is_shown = record.split == "test" and not record.task.endswith(SUFFIX) and not is_without(record)
        if is_shown:
            by_task[record.task, record.dataset].append(record)
    written: list[Path] = []
    for (task, dataset), of_task in sorted(by_task.items()):
        largest = max(of_task, key=lambda record: record.n_queries)
        shown = [record for record in of_task if record.query_ids == largest.query_ids]
        figure, axes = new_figure(f"{task}, {largest.n_queries} queries", _SEARCH_TIME, PRIMARY)
        draw_pareto(axes, [_quality(record) for record in shown])
        _finish(axes)
        written += save_plot(figure, folder / f"quality-{dataset.replace('@', '-')}")
    return written


def plot_recall(records: Sequence[RecallRecord], folder: Path) -> list[Path]:
    """Draw what the lists of each index find of the exact ranking over their median time; exact search has recall 1.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if not records:
        return []
    figure, axes = new_figure(
        "ANN lists (left end) and exact search (right end)", f"{_TIME}, median", "recall of the exact ranking"
    )
    draw_curves(axes, [_recall(record) for record in records])
    _finish(axes)
    return list(save_plot(figure, folder / "recall"))


def _recall(record: RecallRecord) -> Curve:
    name = f"{record.index}, {record.factory or 'no generation'}"
    return Curve(name, [record.ann.p50_ms, record.exact.p50_ms], [record.recall, 1.0])


def _quality(record: RetrievalRecord) -> Point:
    interval = bootstrap_interval(record.per_query[PRIMARY], seed=record.origin.seed)
    milliseconds = 1000 * record.search_seconds / record.n_queries
    return Point(record.system, milliseconds, record.metrics[PRIMARY], record.encoder.partition("@")[0], interval)


def _finish(axes: Axes) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12)
