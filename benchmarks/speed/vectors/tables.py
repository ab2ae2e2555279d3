"""Tables and plots that compare index types at one recall; drawn from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.timing import Percentiles
from benchmarks.plots import COLOURS, MARKERS, QUIET_COLOUR, Point, add_legend, new_figure, pareto_front, save_plot
from benchmarks.speed.records import AnnBuild, AnnPoint, AnnRecord, Found
from benchmarks.speed.vectors.index_types import Library

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 0.95  # document recall at which types are compared
_HIGHER = (0.98, 0.99)  # document recalls at which only times are shown


def ann_table(records: Sequence[AnnRecord]) -> str:
    """A row an index type: the quickest setting that reaches a document recall, or else that of the highest recall."""
    head = ["Vectors", "Index", "Setting, depth", "Recall of chunks", "Recall of documents", "Front"]
    head += ["One chunk p50 / p95, ms", "A document p50 / p95, ms"]
    head += [f"p50 at {higher}, ms" for higher in _HIGHER]
    head += ["Build, s", "Bytes a vector", "Memory building, MiB", "Memory searching, MiB"]
    rows = [row for record in records for build in record.builds if (row := _row(record, build))]
    note = (
        f"Each type with the quickest setting whose document recall is at least {TARGET}, or else its best. Depth: "
        "neighbours that a document asked for, for each of its chunks, at most; a graph set more narrowly than the "
        "first depth is not asked with documents. Front: no type and setting has both a higher document recall and a "
        "lower median time a document. p50 at a higher recall: a document's, with the quickest setting of it, if any. "
        "Bytes: of the index, and + of stored vectors that are read from disk beside it. Memory: the most resident, "
        "while building beyond the float32 vectors given, while searching without them but with what was read of "
        "stored ones. A type with + reads the vectors of as many neighbours by its codes as the first depth, whatever "
        "else it finds: with coarse codes a wider search can crowd true neighbours out of these, so that its recall of "
        "chunks falls."
    )
    return "\n".join([*markdown(head, rows), "", note, "", *_conditions(records), "", *origins(records)])


def chosen_point(build: AnnBuild, target: float) -> tuple[AnnPoint, Found] | None:
    """The quickest setting that reaches a document recall, else that of the highest recall, with its document results.

    None where no setting was searched with documents.
    """
    return _quickest(build, target) or max(_asked(build), key=lambda both: both[1].recall, default=None)


def front(record: AnnRecord) -> set[tuple[str, str]]:
    """Name and setting of the points on the Pareto front of document recall and median time a document."""
    points = [
        Point(build.name, document.latency.p50_ms, document.recall, point.setting)
        for build in record.builds
        for point, document in _asked(build)
    ]
    return {(point.series, point.label) for point in pareto_front(points)}


def _quickest(build: AnnBuild, target: float) -> tuple[AnnPoint, Found] | None:
    reaching = [(point, found) for point, found in _asked(build) if found.recall >= target]
    return min(reaching, key=lambda both: both[1].latency.p50_ms, default=None)


def _asked(build: AnnBuild) -> list[tuple[AnnPoint, Found]]:
    """The settings that were searched with documents, with the results of these searches."""
    return [(point, point.document) for point in build.points if point.document]


def _row(record: AnnRecord, build: AnnBuild) -> list[str]:
    """The cells of a type; none where no setting was searched with documents."""
    chosen = chosen_point(build, TARGET)
    if chosen is None:
        return []
    point, document = chosen
    stored = f" + {build.stored_bytes_per_vector}" if build.is_rescored else ""
    return [
        f"{record.collection} ({record.n_vectors:,})",
        f"{build.name} ({build.version})",
        ", ".join(part for part in (point.setting, f"{point.deepest:,}") if part),
        f"{point.chunk.recall:.3f}",
        f"{document.recall:.3f}",
        "yes" if (build.name, point.setting) in front(record) else "",
        _times(point.chunk.latency),
        _times(document.latency),
        *(f"{found[1].latency.p50_ms:.2f}" if (found := _quickest(build, one)) else "" for one in _HIGHER),
        f"{build.build_seconds:.1f}",
        f"{build.bytes_per_vector:.0f}{stored}",
        f"{build.build_peak_mib:.0f}",
        f"{build.search_peak_mib:.0f}",
    ]


def _times(measured: Percentiles) -> str:
    return f"{measured.p50_ms:.2f} / {measured.p95_ms:.2f}"


def _conditions(records: Sequence[AnnRecord]) -> list[str]:
    """A line a record: its vectors, its threads, types that failed, and types measured at another commit."""
    return [
        f"- {record.collection}: {record.n_vectors:,} vectors {record.width} wide of {record.n_documents:,} documents "
        f"({record.source}), recall at {record.k} over {record.n_query_chunks:,} chunks of {record.n_query_documents} "
        f"other documents, a timed document of {record.document_chunks} chunks, first depth {record.depth}; threads: "
        f"{record.threads} to search, {record.build_threads} to build."
        + "".join(f" {build.name} at commit {build.commit[:10]}." for build in record.builds if build.commit)
        + "".join(f" No result: {name}." for name in record.failed)
        + (" A small part: it shows that all works, not what is good." if record.is_quick else "")
        for record in records
    ]


_SIZE_INCHES = (9.5, 5.4)  # the legend has a line for each type


def save_pareto(record: AnnRecord, folder: Path) -> list[Path]:
    """Write NAME-chunk and NAME-document, each as PNG and SVG, and return the four paths."""
    k, title = record.k, f"A query document of {record.document_chunks} chunks"
    figures = {
        "chunk": _draw(record, "One query chunk", f"recall of the exact {k} nearest chunks", lambda point: point.chunk),
        "document": _draw(record, title, f"recall of the exact best {k} documents", lambda point: point.document),
    }
    return [path for name, figure in figures.items() for path in save_plot(figure, folder / f"{record.name}-{name}")]


def _draw(record: AnnRecord, title: str, y_label: str, found_of: Callable[[AnnPoint], Found | None]) -> Figure:
    """A line for each index type, through its settings in their order, and the front of all of them."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    threads = f"{record.threads} thread" + "s" * (record.threads != 1)
    title = f"{title}: {record.n_vectors:,} vectors, {threads}"
    figure, axes = new_figure(title, "median milliseconds a query, logarithmic", y_label)
    figure.set_size_inches(_SIZE_INCHES)
    curves = [[found for point in build.points if (found := found_of(point))] for build in record.builds]
    front = pareto_front([Point("", found.latency.p50_ms, found.recall) for curve in curves for found in curve])
    x, y = [point.x for point in front], [point.y for point in front]
    axes.step(x, y, "--", where="post", label="Pareto front", color=QUIET_COLOUR, linewidth=1, zorder=1)
    for build, curve, style in zip(record.builds, curves, _styles(record.builds), strict=True):
        x, y = [found.latency.p50_ms for found in curve], [found.recall for found in curve]
        axes.plot(x, y, label=build.name, markersize=6, **style)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
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
