"""How plots look, and how they are written as PNG and SVG whose bytes are the same each time.

What is drawn comes from records; nothing is measured here. Figures are made without pyplot: no window opens, and
no setting of matplotlib is changed. matplotlib is imported when a figure is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe & Ito (2008): distinct to colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # one more than colours: 56 series before a pair repeats
QUIET_COLOUR = "#666666"
SIZE_INCHES = (7.0, 4.2)
DPI = 160

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same on every machine
    "font.size": 10,
    "text.parse_math": False,  # a dollar sign in a name is not math
    "svg.fonttype": "path",
    "svg.hashsalt": "longmatch",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement of a system on two axes."""

    series: str  # points of one series share colour and marker
    x: float
    y: float
    label: str = ""  # written beside it
    interval: tuple[float, float] | None = None  # lower and upper end of y


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of one system as a quantity grows: N values at N positions."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    intervals: Sequence[tuple[float, float]] = ()  # of y; N of them, or none


def new_figure(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """An empty figure of `SIZE_INCHES` with one pair of labelled axes; draw on it, then call `save_plot`."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("plots", "matplotlib", "benchmarks") from error
    with rc_context(_SETTINGS):
        figure = Figure(figsize=SIZE_INCHES, layout="constrained", facecolor="white")
        axes = figure.subplots()
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xlabel(x_label, fontsize=10)
        axes.set_ylabel(y_label, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E4E4E4")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9)
    return figure, axes


def save_plot(figure: Figure, path_without_suffix: Path) -> tuple[Path, Path]:
    """Write NAME.png and NAME.svg, and return their paths.

    Files hold no date and no version, and ids in the SVG are hashed with a fixed salt: the same figure gives the same
    bytes under one version of matplotlib.
    """
    from matplotlib import rc_context

    path_without_suffix.parent.mkdir(parents=True, exist_ok=True)
    # Names of encoders contain dots, which with_suffix would cut.
    png, svg = (path_without_suffix.with_name(path_without_suffix.name + suffix) for suffix in (".png", ".svg"))
    with rc_context(_SETTINGS):
        figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return png, svg


def series_styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each name, in the order in which the names first occur."""
    return {
        name: (COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
        for number, name in enumerate(dict.fromkeys(names))
    }


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """The points that no other point dominates, by rising x; low x and high y are good, and equal points all stay."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not front or point.y > front[-1].y or (point.x, point.y) == (front[-1].x, front[-1].y):
            front.append(point)
    return front


def draw_pareto(axes: Axes, points: Sequence[Point]) -> None:
    """Draw points, at least one, by series, with intervals and labels, and a line along the Pareto front."""
    front = pareto_front(points)
    x, y = [point.x for point in front], [point.y for point in front]
    axes.step(x, y, where="post", color=QUIET_COLOUR, linestyle="--", linewidth=1, label="Pareto front")
    middle = sorted(point.x for point in points)[(len(points) - 1) // 2]
    for series, (colour, marker) in series_styles(point.series for point in points).items():
        own = [point for point in points if point.series == series]
        places = [point.x for point in own], [point.y for point in own]
        axes.plot(*places, marker, color=colour, markersize=6, label=series)
        for point in own:
            if point.interval:
                axes.vlines(point.x, *point.interval, color=colour, linewidth=1.2)
            if point.label:
                # Labels of points in the right half are on their left, so that none leaves the axes.
                _write_beside(axes, point, colour, to_left=point.x > middle)
    add_legend(axes)


def draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw each curve as a line with markers, in a band of its intervals where it has them."""
    for curve, (colour, marker) in zip(curves, series_styles(curve.name for curve in curves).values(), strict=True):
        axes.plot(curve.x, curve.y, marker=marker, color=colour, markersize=5, linewidth=1.6, label=curve.name)
        if curve.intervals:
            low, high = zip(*curve.intervals, strict=True)
            axes.fill_between(curve.x, low, high, color=colour, alpha=0.12, linewidth=0)
    add_legend(axes)


def _write_beside(axes: Axes, point: Point, colour: str, *, to_left: bool) -> None:
    written = axes.annotate(
        point.label,
        (point.x, point.y),
        xytext=(-6 if to_left else 6, 4),
        textcoords="offset points",
        horizontalalignment="right" if to_left else "left",
        fontsize=8,
        color=colour,
    )
    written.set_parse_math(False)


def add_legend(axes: Axes) -> None:
    """Name the series beside the axes, where a legend covers nothing."""
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_parse_math(False)
