"""Heat maps of results: the contributions of sections of queries and hits to scores. It needs matplotlib.

There is no window, and no state of pyplot.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.plots.style import DPI, Plot
from engine.report.table import no_hits
from engine.result import Hit, Result
from engine.text.document import section_label

if TYPE_CHECKING:
    from engine.text.document import Document


_INCHES_PER_CELL = 0.3
_SMALLEST, _LARGEST = 2.5, 11.0  # inches of the longer side of the matrix
_LABEL_INCHES = 0.16  # least distance between two labels
_LABEL_CHARACTERS = 34
_MOST_NUMBERED_CELLS = 24 * 24
_DPI = 130
_POINTS_PER_INCH = 72
_COLOURS = "viridis"
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of red, green and blue
_MIDDLE = 0.45  # luminance below which a number is white


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a matrix: its cells in groups, each group with a name."""

    title: str
    labels: tuple[str, ...]
    sizes: tuple[int, ...]  # cells of each group, at least 1

    @property
    def n_cells(self) -> int:
        """Rows or columns of the matrix."""
        return sum(self.sizes)


def section_axis(document: Document) -> Axis:
    """A cell for each section."""
    labels = tuple(section_label(document, position) for position in range(len(document.sections)))
    return Axis(document.title, labels, (1,) * len(labels))


def draw_heatmap(
    values: Vectors,
    rows: Axis,
    columns: Axis,
    *,
    measure: str,
    figure: Figure | None = None,
    colours: str = _COLOURS,
    norm: Normalize | None = None,
    least_number: float = float("-inf"),
) -> Figure:
    """Draw a matrix, with lines between groups of cells.

    Args:
        values: (rows.n_cells, columns.n_cells).
        least_number: values below it are not written into their cells.
    """
    height, width = _inches(rows.n_cells, columns.n_cells)
    figure = Figure(dpi=_DPI) if figure is None else figure
    figure.set_size_inches(width, height)
    axes = figure.add_axes((0, 0, 1, 1))  # labels are outside of the axes; the tight bounding box includes them
    image = axes.imshow(values, cmap=colours, norm=norm, aspect="auto")
    _label(axes, rows, columns, height, width)
    _rule(axes.axhline, rows, height)
    _rule(axes.axvline, columns, width)
    if values.size <= _MOST_NUMBERED_CELLS:
        luminance = image.to_rgba(values)[..., :3] @ _LUMINANCE
        _number(axes, values, luminance < _MIDDLE, least_number)
    bar = figure.add_axes((1 + 0.2 / width, 0, 0.15 / width, 1))
    figure.colorbar(image, cax=bar).set_label(measure, fontsize=8)
    bar.tick_params(labelsize=7)
    return figure


def _inches(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Height and width of the matrix; cells are square where that makes neither side too short."""
    per_cell = min(_INCHES_PER_CELL, _LARGEST / max(n_rows, n_columns))
    return max(_SMALLEST, n_rows * per_cell), max(_SMALLEST, n_columns * per_cell)


def _label(axes: Axes, rows: Axis, columns: Axis, height: float, width: float) -> None:
    # A heading is not a formula, even if it has dollar signs.
    at, names = _ticks(rows, height)
    axes.set_yticks(at, names, fontsize=7, parse_math=False)
    at, names = _ticks(columns, width)
    axes.xaxis.tick_top()
    axes.set_xticks(at, names, fontsize=7, rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
    axes.tick_params(length=0)
    axes.set_ylabel(_short(rows.title, 70), fontsize=9, parse_math=False)
    axes.xaxis.set_label_position("bottom")
    axes.set_xlabel(_short(columns.title, 70), fontsize=9, parse_math=False)


def _ticks(axis: Axis, inches: float) -> tuple[list[float], list[str]]:
    """The middle and the name of each group; if groups are narrow, only of those with room for a name."""
    per_cell = inches / axis.n_cells
    at: list[float] = []
    names: list[str] = []
    for stop, size, name in zip(accumulate(axis.sizes), axis.sizes, axis.labels, strict=True):
        middle = stop - size / 2 - 0.5
        if not at or (middle - at[-1]) * per_cell >= _LABEL_INCHES:
            at.append(middle)
            names.append(_short(name, _LABEL_CHARACTERS))
    return at, names


def _short(text: str, characters: int) -> str:
    shortened = textwrap.shorten(text, characters, placeholder="…")
    return text[: characters - 1] + "…" if shortened == "…" else shortened  # the first word is too long


def _rule(draw: Callable[..., Line2D], axis: Axis, inches: float) -> None:
    """Draw a line between neighbouring groups of several cells, thin compared with a cell."""
    if axis.n_cells > len(axis.sizes):
        points = min(0.7, 0.2 * _POINTS_PER_INCH * inches / axis.n_cells)
        for border in list(accumulate(axis.sizes))[:-1]:
            draw(border - 0.5, color="white", linewidth=points)


def _number(axes: Axes, values: Vectors, is_dark: NDArray[np.bool_], least: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if value >= least:
            colour = "white" if is_dark[row, column] else "black"
            shown = f"{value:.2f}".replace("0.", ".", 1)
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color=colour)


_BLUES = "Blues"  # from white, so that a cell without contribution is empty
_MEASURE = "contribution to the score"
_ROOT = 0.5  # exponent of values for their shades, since one strong pair would otherwise leave all others white
_LEAST_NUMBER = 0.005  # below it a number would be rounded to zero


def plot_hit(result: Result, hit: Hit) -> Plot:
    """The contribution of each pair of a query section and a target section."""
    rows, columns = section_axis(result.query), section_axis(hit.document)
    values = np.zeros((rows.n_cells, columns.n_cells), np.float32)
    for pair in hit.pairs:
        values[pair.query_section, pair.target_section] += pair.contribution
    return _drawn(values, rows, columns, f"{hit.rank}. score {hit.score:.4f}")


def plot_result(result: Result) -> Plot:
    """The contribution of each query section to the score of each hit; a column sums to a score, less small pairs.

    Raises:
        QueryError: there are no hits.
    """
    if not result.hits:
        raise QueryError(f"the result of {result.query.title!r} has no hits to draw; {no_hits(result)}")
    sections = section_axis(result.query)
    values = np.zeros((sections.n_cells, len(result.hits)), np.float32)
    for column, hit in enumerate(result.hits):
        for pair in hit.pairs:
            values[pair.query_section, column] += pair.contribution
    names = tuple(f"{hit.rank}. {hit.score:.4f} {hit.title}" for hit in result.hits)
    return _drawn(values, sections, Axis("hits, best first", names, (1,) * len(names)), f"{result.status.value} result")


def _drawn(values: Vectors, rows: Axis, columns: Axis, title: str) -> Plot:
    figure = Plot(dpi=DPI, facecolor="white")
    norm = PowerNorm(_ROOT, vmin=0.0, vmax=max(float(values.max(initial=0.0)), 1e-6))
    draw_heatmap(
        values, rows, columns, measure=_MEASURE, figure=figure, colours=_BLUES, norm=norm, least_number=_LEAST_NUMBER
    )
    figure.axes[0].set_title(title, loc="left", y=0, pad=-34, fontsize=9)
    return figure
