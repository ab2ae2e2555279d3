"""Heat maps of results, with the colours, markers and files of all pictures. It needs matplotlib."""

from __future__ import annotations

import io
import textwrap
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.report.table import no_hits
from engine.result import Hit, Result
from engine.text.document import Document, section_label

# Okabe & Ito (2008): distinct for colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one for each colour, so that no reader depends on colours alone
FAINT, DARK = "#8a8a8a", "#333333"
DPI = 130
Form = Literal["png", "svg"]


class Plot(Figure):
    """A figure on white that a notebook shows by itself; `savefig` writes PNG, SVG or PDF."""

    def _repr_png_(self) -> bytes:
        return figure_file(self, "png")


def figure_file(figure: Figure, form: Form) -> bytes:
    """Render a figure, cropped to its contents; the same figure gives the same bytes."""
    stream = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longmatch"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a title may be in any script
        figure.savefig(stream, format=form, dpi=DPI, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
    return stream.getvalue()


_INCHES_PER_CELL = 0.3
_SMALLEST, _LARGEST = 2.5, 11.0  # inches of the longer side of the matrix
_LABEL_INCHES = 0.16  # least distance between two labels
_LABEL_CHARACTERS = 34
_MOST_NUMBERED_CELLS = 24 * 24
_COLOURS = "Blues"  # from white, so that a cell without contribution is empty
_ROOT = 0.5  # exponent of values for their shades, since one strong pair would otherwise leave all others white
_LEAST_NUMBER = 0.005  # below it a number would be rounded to zero
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])  # of red, green and blue
_MIDDLE = 0.45  # luminance below which a number is white


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a matrix, with a label for each row or column."""

    title: str
    labels: tuple[str, ...]


def section_axis(document: Document) -> Axis:
    """A label for each section."""
    return Axis(document.title, tuple(section_label(document, position) for position in range(len(document.sections))))


def plot_hit(result: Result, hit: Hit) -> Plot:
    """The contribution of each pair of a query section and a target section."""
    rows, columns = section_axis(result.query), section_axis(hit.document)
    values = np.zeros((len(rows.labels), len(columns.labels)), np.float32)
    for pair in hit.pairs:
        values[pair.query_section, pair.target_section] += pair.contribution
    return draw_heatmap(values, rows, columns, f"{hit.rank}. score {hit.score:.4f}")


def plot_result(result: Result) -> Plot:
    """The contribution of each query section to the score of each hit; a column sums to a score, less small pairs.

    Raises:
        QueryError: there are no hits.
    """
    if not result.hits:
        raise QueryError(f"the result of {result.query.title!r} has no hits to draw; {no_hits(result)}")
    sections = section_axis(result.query)
    values = np.zeros((len(sections.labels), len(result.hits)), np.float32)
    for column, hit in enumerate(result.hits):
        for pair in hit.pairs:
            values[pair.query_section, column] += pair.contribution
    names = tuple(f"{hit.rank}. {hit.score:.4f} {hit.title}" for hit in result.hits)
    return draw_heatmap(values, sections, Axis("hits, best first", names), f"{result.status.value} result")


def draw_heatmap(values: Vectors, rows: Axis, columns: Axis, title: str) -> Plot:
    """Draw a matrix of contributions, with its title below it."""
    height, width = _inches(*values.shape)
    figure = Plot(dpi=DPI, facecolor="white", figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))  # labels are outside of the axes; the tight bounding box includes them
    norm = PowerNorm(_ROOT, vmin=0.0, vmax=max(float(values.max(initial=0.0)), 1e-6))
    image = axes.imshow(values, cmap=_COLOURS, norm=norm, aspect="auto")
    _label(axes, rows, columns, height, width)
    if values.size <= _MOST_NUMBERED_CELLS:
        luminance = image.to_rgba(values)[..., :3] @ _LUMINANCE
        _number(axes, values, luminance < _MIDDLE)
    bar = figure.add_axes((1 + 0.2 / width, 0, 0.15 / width, 1))
    figure.colorbar(image, cax=bar).set_label("contribution to the score", fontsize=8)
    bar.tick_params(labelsize=7)
    axes.set_title(title, loc="left", y=0, pad=-34, fontsize=9)
    return figure


def _inches(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Height and width of the matrix; cells are square where that makes neither side too short."""
    per_cell = min(_INCHES_PER_CELL, _LARGEST / max(n_rows, n_columns))
    return max(_SMALLEST, n_rows * per_cell), max(_SMALLEST, n_columns * per_cell)


def _label(axes: Axes, rows: Axis, columns: Axis, height: float, width: float) -> None:
    # A heading is not a formula, even if it has dollar signs.
    axes.set_yticks(*_ticks(rows.labels, height), fontsize=7, parse_math=False)
    axes.xaxis.tick_top()
    at, names = _ticks(columns.labels, width)
    axes.set_xticks(at, names, fontsize=7, rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
    axes.tick_params(length=0)
    axes.set_ylabel(_short(rows.title, 70), fontsize=9, parse_math=False)
    axes.xaxis.set_label_position("bottom")
    axes.set_xlabel(_short(columns.title, 70), fontsize=9, parse_math=False)


def _ticks(labels: tuple[str, ...], inches: float) -> tuple[range, list[str]]:
    """The cells with a label, and their labels; if cells are narrow, as many as have room for one."""
    at = range(0, len(labels), int(np.ceil(_LABEL_INCHES * len(labels) / inches)))
    return at, [_short(labels[cell], _LABEL_CHARACTERS) for cell in at]


def _short(text: str, characters: int) -> str:
    shortened = textwrap.shorten(text, characters, placeholder="…")
    return text[: characters - 1] + "…" if shortened == "…" else shortened  # the first word is too long


def _number(axes: Axes, values: Vectors, is_dark: NDArray[np.bool_]) -> None:
    for (row, column), value in np.ndenumerate(values):
        if value >= _LEAST_NUMBER:
            colour = "white" if is_dark[row, column] else "black"
            shown = f"{value:.2f}".replace("0.", ".", 1)
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color=colour)
