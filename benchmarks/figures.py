"""Draws every plot, as PNG and SVG, from committed records and runs, and from nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.metrics import PRIMARY
from benchmarks.plots import Curve, Point, draw_curves, draw_pareto, new_figure, save_plot
from benchmarks.quick import SUFFIX
from benchmarks.records import read_records
from benchmarks.runs import Run
from benchmarks.significance import bootstrap_interval
from benchmarks.speed.recall import RecallRecord
from benchmarks.tasks.faithfulness import draw_faithfulness

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIME = "milliseconds a query, one at a time"


def draw_figures(results: Path, folder: Path) -> list[Path]:
    """Draw all records and runs of a folder that have a plot, and return the paths written."""
    found = read_records(results)
    runs = [record for record in found if isinstance(record, Run)]
    return [
        *plot_quality([run for run in runs if run.task == "retrieval"], folder),
        *draw_faithfulness(
            [run for run in runs if run.task == "faithfulness" and not run.corpus.endswith(SUFFIX)], folder
        ),
        *plot_recall([record for record in found if isinstance(record, RecallRecord)], folder),
    ]


def plot_quality(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw nDCG@10 of each system over the time of its searches, with intervals, for each dataset.

    Runs of quick parts, of parts of queries and of encoders that were trained without a corpus are left out. So are
    runs with other test queries than the largest run of the dataset.
    """
    by_dataset: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.split == "test" and not run.corpus.endswith(SUFFIX) and not run.variant:
            by_dataset[run.dataset].append(run)
    written: list[Path] = []
    for dataset, of_one in sorted(by_dataset.items()):
        largest = max(of_one, key=lambda run: len(run.cases))
        shown = [run for run in of_one if run.case_ids == largest.case_ids]
        title = f"{largest.corpus}, {len(largest.cases)} queries"
        figure, axes = new_figure(title, f"{_TIME}, already encoded or fitted", PRIMARY)
        points = []
        for run in shown:
            interval = bootstrap_interval(run.values(PRIMARY), seed=run.origin.seed)
            ms = 1000 * run.seconds / len(run.cases)
            points.append(Point(run.system, ms, run.mean(PRIMARY), run.encoder_name, interval))
        draw_pareto(axes, points)
        _finish(axes)
        written += save_plot(figure, folder / f"quality-{dataset.replace('@', '-')}")
    return written


def plot_recall(records: Sequence[RecallRecord], folder: Path) -> list[Path]:
    """Draw the recall of each index's ANN lists over their median time; exact search has recall 1."""
    if not records:
        return []
    figure, axes = new_figure(
        "ANN lists (left end) and exact search (right end)", f"{_TIME}, median", "recall of the exact ranking"
    )
    draw_curves(
        axes,
        [
            Curve(
                f"{record.index}, {record.factory or 'no generation'}",
                [record.ann.p50_ms, record.exact.p50_ms],
                [record.recall, 1.0],
            )
            for record in records
        ],
    )
    _finish(axes)
    return list(save_plot(figure, folder / "recall"))


def _finish(axes: Axes) -> None:
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12)
