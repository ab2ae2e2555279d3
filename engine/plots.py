"""The map of a corpus, as a picture. It needs matplotlib.

Near points are similar documents; distant points can be similar too, since two components show only a part of the
variance.

A point is the first two principal components of the vector of a document. Letters in shapes: N documents, D width.
"""

import io
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import QueryError, command_line
from engine.index import Index
from engine.result import Result
from engine.store.partitioned import Snapshot
from engine.store.reference import sample_order
from engine.store.snapshot import Positions
from engine.text.document import Document

# Okabe & Ito (2008): distinct for colour-blind readers; without their yellow, too faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # one for each colour, so that no reader depends on colours alone
FAINT, DARK = "#8a8a8a", "#333333"
DPI = 130
Form = Literal["png", "svg"]


def figure_file(figure: Figure, form: Form) -> bytes:
    """Render a figure, cropped to its contents; the same figure gives the same bytes."""
    stream = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "longmatch"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a title may be in any script
        figure.savefig(stream, format=form, dpi=DPI, bbox_inches="tight", pad_inches=0.12, metadata=metadata)
    return stream.getvalue()


Points = NDArray[np.float64]
_K = 2


@dataclass(frozen=True, slots=True)
class Projection:
    """Points of documents, and the function that places further documents."""

    points: Points  # (N, 2)
    shares: tuple[float, float]  # of the variance, in [0, 1]
    place: Callable[[NDArray[np.float64]], Points]  # rows (n, D) -> (n, 2)


def project_vectors(vectors: Vectors) -> Projection:
    """Principal components of document vectors."""
    rows = vectors.astype(np.float64)
    mean = rows.mean(0) if len(rows) else np.zeros(rows.shape[1])
    centred = rows - mean
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = _turned(axes[:, ::-1][:, :_K])
    points = centred @ axes
    variance = float((centred**2).sum())
    first, second = (_planar(points) ** 2).sum(0).tolist()
    return Projection(
        _planar(points),
        (first / variance, second / variance) if variance > 0 else (0.0, 0.0),
        lambda new: _planar((new - mean) @ axes),
    )


def _turned(axes: Points) -> Points:
    """Axes, each with the sign that makes its largest entry positive, so that pictures are the same on all machines."""
    if not axes.size:
        return axes
    largest = axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]
    turned: Points = axes * np.where(largest < 0, -1.0, 1.0)
    return turned


def _planar(points: Points) -> Points:
    """Points in two columns, even if there are fewer components."""
    return np.pad(points, ((0, 0), (0, _K - points.shape[1])))


MOST_DOCUMENTS = 10_000  # documents on a map; a larger corpus is sampled by the hash of the doc_ids
_HUES = len(COLOURS) - 1  # values of a field; the last colour is of the query
_NO_VALUE, _OTHERS = "no value", "other values"
_TITLE_CHARACTERS = 44
_AWAY = 12.0  # points from a hit to its number
_SMALL, _LARGE = 9, 42  # areas of a point, by the number of points


@dataclass(frozen=True, slots=True)
class CorpusMap:
    """The point of each document."""

    positions: Positions  # (N,) of the documents, rising
    points: Points  # (N, 2)
    shares: tuple[float, float]  # share of the variance that each axis shows
    n_documents: int  # of the index
    query: Points | None = None  # (1, 2)


def corpus_map(index: Index, query: Document | str | None = None, where: str | None = None) -> CorpusMap:
    """Project the documents of an index, and a query with them.

    Documents without vectors are left out.
    """
    snapshot = index.snapshot
    chosen = index.matching(where)
    if len(chosen) > MOST_DOCUMENTS:
        order = sample_order(snapshot.doc_ids())
        chosen = np.sort(order[np.isin(order, chosen)][:MOST_DOCUMENTS])
    encoded = chosen[snapshot.has_vectors[chosen]]
    if 2 * len(encoded) < len(chosen):
        raise QueryError(
            f"{len(chosen) - len(encoded):,} of {len(chosen):,} documents have no vectors yet, which place them on the "
            f"map; encode them: {command_line('index', snapshot.folder)}"
        )
    projection = project_vectors(snapshot.document_rows(encoded).astype(np.float32))
    at = None
    if query is not None:
        read = index.stored_query(query).vectors if isinstance(query, str) else index.encoder.encode([query])[0]
        at = projection.place(read.document[None].astype(np.float64))
    return CorpusMap(encoded, projection.points, projection.shares, snapshot.n_documents, at)


def plot_map(index: Index, corpus: CorpusMap, *, result: Result | None = None, by: str | None = None) -> Figure:
    """Draw a map."""
    figure, axes = _map_figure(corpus)
    _draw_documents(axes, corpus, None if by is None else _groups(index.snapshot, corpus.positions, by), by)
    if result is not None:
        _draw_hits(axes, index.snapshot, corpus, result)
    if corpus.query is not None:
        title = "query" if result is None else f"query: {_short(result.query.title)}"
        x, y = corpus.query[0].tolist()
        axes.scatter([x], [y], s=190, marker="*", color=COLOURS[-1], edgecolors="white", zorder=5, label=title)
    _add_legend(figure, axes)
    return figure


def _map_figure(corpus: CorpusMap) -> tuple[Figure, Axes]:
    """A figure without points, whose axes and title describe the map."""
    figure = Figure(figsize=(8, 6.5), facecolor="white", layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    for number, (share, axis) in enumerate(zip(corpus.shares, (axes.xaxis, axes.yaxis), strict=True), start=1):
        name = f"component {number}: {100 * share:.1f} % of the variance"
        axis.set_label_text(name, fontsize=9, color=DARK)
    n_shown = len(corpus.positions)
    of = "" if n_shown == corpus.n_documents else f" of {corpus.n_documents:,}"
    axes.set_title(f"{n_shown:,}{of} documents", loc="left", fontsize=11, color=DARK)
    return figure, axes


def _add_legend(figure: Figure, axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        with rc_context({"text.parse_math": False}):  # a title is not a formula, even if it has dollar signs
            figure.legend(loc="outside right upper", fontsize=8, frameon=False)


def _draw_points(axes: Axes, corpus: CorpusMap, rows: slice | NDArray[np.bool_], **style: object) -> None:
    """Draw some points of a map; smaller where there are many."""
    area = float(np.clip(6_000 / max(1, len(corpus.points)), _SMALL, _LARGE))
    look: dict[str, Any] = {"s": area, "alpha": 0.8, "linewidths": 0.4, "edgecolors": "white", **style}
    axes.scatter(*corpus.points[rows].T, rasterized=len(corpus.points) > 2_000, **look)


def _draw_documents(axes: Axes, corpus: CorpusMap, groups: list[str] | None, by: str | None) -> None:
    if groups is None:
        _draw_points(axes, corpus, slice(None), color=COLOURS[0])
        return
    names = np.array(groups)
    quiet = (_OTHERS, _NO_VALUE)
    ordered = [name for name, _ in Counter(groups).most_common() if name not in quiet]
    for number, name in enumerate([*ordered, *(name for name in quiet if name in groups)]):
        colour, marker = (FAINT, ".") if name in quiet else (COLOURS[number], MARKERS[number])
        _draw_points(axes, corpus, names == name, color=colour, marker=marker, label=f"{by}: {name}")


def _groups(snapshot: Snapshot, positions: Positions, by: str) -> list[str]:
    """The value of a field for each document, if it is one of the most common; the first value of a list."""
    values = [_value(document.metadata.get(by)) for document, _ in snapshot.documents(positions)]
    common = {value for value, _ in Counter(v for v in values if v != _NO_VALUE).most_common(_HUES)}
    return [value if value in common or value == _NO_VALUE else _OTHERS for value in values]


def _value(value: object) -> str:
    if isinstance(value, list):
        value = value[0] if value else None
    return _NO_VALUE if value is None or value == "" else _short(str(value))


def _draw_hits(axes: Axes, snapshot: Snapshot, corpus: CorpusMap, result: Result) -> None:
    """Draw a ring around each hit with its rank, and a line from the query to the hit."""
    for hit in result.hits:
        at = _row_of(snapshot, corpus.positions, hit.doc_id)
        if at is None:
            continue
        x, y = corpus.points[at].tolist()
        if corpus.query is not None:
            axes.plot([corpus.query[0, 0], x], [corpus.query[0, 1], y], color=FAINT, linewidth=0.6, zorder=1)
        label = f"{hit.rank}: {hit.score:.4f} {_short(hit.title)}"
        axes.scatter([x], [y], s=90, facecolors="none", edgecolors=COLOURS[-1], zorder=4, label=label)
        _draw_number(axes, corpus, hit.rank, (x, y))


def _draw_number(axes: Axes, corpus: CorpusMap, number: int, point: tuple[float, float]) -> None:
    place = _away(axes, corpus, point)
    drawn = axes.annotate(str(number), point, place, "data", "offset points", ha="center", va="center", zorder=6)
    drawn.set_fontsize(9)
    drawn.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _away(axes: Axes, corpus: CorpusMap, point: tuple[float, float]) -> tuple[float, float]:
    """The offset of a number from its point, in points: away from the query or the middle, to avoid the lines."""
    centre = corpus.points.mean(0) if corpus.query is None else corpus.query[0]
    corner = axes.transData.transform(point) - axes.transData.transform(centre)
    length = float(np.hypot(*corner))
    x, y = corner / length if length else (0.7, 0.7)
    return _AWAY * float(x), _AWAY * float(y)


def _row_of(snapshot: Snapshot, positions: NDArray[np.int64], doc_id: str) -> int | None:
    """The row of a document among rising positions; None if it is not among them."""
    position = snapshot.position(doc_id)
    at = int(np.searchsorted(positions, -1 if position is None else position))
    return at if position is not None and at < len(positions) and positions[at] == position else None


def _short(text: str) -> str:
    return textwrap.shorten(text, _TITLE_CHARACTERS, placeholder="…")
