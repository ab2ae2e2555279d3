"""Recall against time of all index types and settings as plots; drawn from a record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.plots import (
    COLOURS,
    MARKERS,
    QUIET_COLOUR,
    Point,
    add_legend,
    new_figure,
    pareto_front,
    save_plot,
)
from benchmarks.vectors.candidate import Library
from benchmarks.vectors.record import AnnBuild, AnnPoint, AnnRecord, Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (9.5, 5.4)  # the legend has a line for each type


@dataclass(frozen=True)
class _View:
    """One of the two plots of a record."""

    suffix: str
    title: str
    y_label: str
    found: Callable[[AnnPoint], Found | None]


_VIEWS = (
    _View(
        "chunk",
        "One query chunk",
        "recall of the exact {k} nearest chunks",
        lambda point: point.chunk,
    ),
    _View(
        "document",
        "A query document of {chunks} chunks",
        "recall of the exact best {k} documents",
        lambda point: point.document,
    ),
)


def save_pareto(record: AnnRecord, folder: Path) -> list[Path]:
    """Write NAME-chunk and NAME-document, each as PNG and SVG, and return the four paths.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    return [path for view in _VIEWS for path in save_plot(_draw(record, view), folder / f"{record.name}-{view.suffix}")]


def _draw(record: AnnRecord, view: _View) -> Figure:
    """A line for each index type, through its settings in their order, and the front of all of them."""
    threads = f"{record.threads} thread" + "s" * (record.threads != 1)
    figure, axes = new_figure(
        f"{view.title.format(chunks=record.document_chunks)}: {record.n_vectors:,} vectors, {threads}",
        "median milliseconds a query, logarithmic",
        view.y_label.format(k=record.k),
    )
    figure.set_size_inches(_SIZE_INCHES)
    curves = [[found for point in build.points if (found := view.found(point))] for build in record.builds]
    _draw_front(axes, [Point("", found.latency.p50_ms, found.recall) for curve in curves for found in curve])
    for build, curve, style in zip(record.builds, curves, _styles(record.builds), strict=True):
        x, y = [found.latency.p50_ms for found in curve], [found.recall for found in curve]
        axes.plot(x, y, label=build.name, markersize=6, **style)
    _scale(axes)
    add_legend(axes)
    return figure


def _styles(builds: Sequence[AnnBuild]) -> list[dict[str, Any]]:
    """A colour for each library, and within it a marker for each type: full ones first, then hollow ones."""
    colours = dict(zip(Library, COLOURS, strict=False))
    so_far: Counter[str] = Counter()
    styles = []
    for build in builds:
        colour, number = colours[Library(build.library)], so_far[build.library]
        so_far[build.library] += 1
        is_ours = build.library == Library.LONGMATCH
        styles.append(
            {
                "color": colour,
                "marker": MARKERS[number % len(MARKERS)],
                "markerfacecolor": colour if number < len(MARKERS) else "white",
                "linestyle": "-" if is_ours else ":",
                "linewidth": 1.8 if is_ours else 1.2,
                "zorder": 3 if is_ours else 2,
            }
        )
    return styles


def _draw_front(axes: Axes, points: Sequence[Point]) -> None:
    front = pareto_front(points)
    x, y = [point.x for point in front], [point.y for point in front]
    axes.step(x, y, "--", where="post", label="Pareto front", color=QUIET_COLOUR, linewidth=1, zorder=1)


def _scale(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
