"""Tables and plots of slices by length and by position, drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.markdown import markdown, origins
from benchmarks.plots import QUIET_COLOUR, Curve, draw_curves, new_figure, save_plot
from benchmarks.slices.records import N_TENTHS, LengthRecord, PositionRecord

_OF = {"query": "length of the query", "targets": "median length of the relevant targets"}
_GROUPS = {"all": "hits", "relevant": "relevant hits"}
_LENGTH_NOTE = (
    "Queries in buckets of as many each, but for equal lengths, by their own length or by the median length of their "
    "relevant targets; intervals of 95 % by bootstrap over queries."
)
_POSITION_NOTE = (
    "Share of the contributions of passages and words that lies in each tenth of the text: a hit counts 1, then a "
    "query counts 1; 0.100 everywhere is no bias. Intervals of 95 % by bootstrap over queries are in the records. "
    "Whole documents: the share of a score that the document vectors gave, over all hits; one that they gave entirely "
    "has no place in the text."
)


def length_table(records: Sequence[LengthRecord]) -> str:
    """A row for each task, system and way of measuring length, a column for each bucket; "" without records."""
    if not records:
        return ""
    n_buckets = max(len(record.n_queries) for record in records)
    head = ["Task, by", "System", *(f"Bucket {number}" for number in range(1, n_buckets + 1))]
    rows = []
    for record in records:
        left_out = f", without {record.n_left_out} whose targets are all absent" if record.n_left_out else ""
        label = f"{record.task}{_split(record.split)}, {_OF[record.by]}{left_out}"
        spans = zip(record.shortest, record.longest, record.n_queries, strict=True)
        cells = [f"{shortest:,.0f} to {longest:,.0f} ({n})" for shortest, longest, n in spans]
        rows.append([label, f"{record.unit} (queries)", *_filled(cells, n_buckets)])
        for system, *values in zip(record.systems, record.mean, record.low, record.high, strict=True):
            cells = [f"{mean:.3f} [{low:.3f}, {high:.3f}]" for mean, low, high in zip(*values, strict=True)]
            rows.append(["", system, *_filled(cells, n_buckets)])
    metrics = ", ".join(dict.fromkeys(record.metric for record in records))
    return "\n".join([*markdown(head, rows), "", f"{metrics}. {_LENGTH_NOTE}", "", *origins(records)])


def position_table(records: Sequence[PositionRecord]) -> str:
    """A row for each task, encoder, group of hits and side; "" without records."""
    if not records:
        return ""
    head = ["Task (queries)", "Encoder", "Hits", "Side", *map(str, range(1, N_TENTHS + 1)), "Whole documents"]
    rows = [
        [
            f"{record.task}{_split(record.split)} ({record.n_queries[group]})",
            record.encoder.partition("@")[0],
            f"{record.n_hits[group]:,} {_GROUPS[group]} of the first {record.k}{_unplaced(record, group)}",
            side,
            *(f"{share:.3f}" for share in shares),
            f"{record.document_share[group]:.3f}",
        ]
        for record in records
        for group, by_side in record.mass.items()
        for side, shares in by_side.items()
    ]
    return "\n".join([*markdown(head, rows), "", _POSITION_NOTE, "", *origins(records)])


def plot_lengths(record: LengthRecord, folder: Path) -> tuple[Path, Path]:
    """Draw the metric of each system over length, on a logarithmic axis, as PNG and SVG named by the record."""
    title = f"{record.task}{_split(record.split)}: {record.metric} by {_OF[record.by]}"
    figure, axes = new_figure(title, f"{record.unit}, median of the bucket", record.metric)
    intervals = [list(zip(low, high, strict=True)) for low, high in zip(record.low, record.high, strict=True)]
    rows = zip(record.systems, record.mean, intervals, strict=True)
    draw_curves(axes, [Curve(system, record.median, mean, interval) for system, mean, interval in rows])
    axes.set_xscale("log")
    axes.set_xticks(record.median, [f"{length:,.0f}" for length in record.median])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    return save_plot(figure, folder / record.name)


def plot_positions(record: PositionRecord, folder: Path) -> list[tuple[Path, Path]]:
    """Draw the shares of the tenths of queries, and of targets, a plot each, as PNG and SVG."""
    return [_plot_side(record, side, folder) for side in ("query", "target")]


def _plot_side(record: PositionRecord, side: str, folder: Path) -> tuple[Path, Path]:
    title = f"{record.task}{_split(record.split)}, {record.encoder.partition('@')[0]}: what gave the scores"
    figure, axes = new_figure(title, f"tenth of the {side}, from its beginning", "share of contributions")
    tenths = list(range(1, N_TENTHS + 1))
    axes.axhline(1 / N_TENTHS, color=QUIET_COLOUR, linestyle=":", linewidth=1, label="no bias")
    curves = [
        Curve(
            f"{_GROUPS[group]} of the first {record.k} ({record.n_hits[group]:,})",
            tenths,
            by_side[side],
            list(zip(record.low[group][side], record.high[group][side], strict=True)),
        )
        for group, by_side in record.mass.items()
    ]
    draw_curves(axes, curves)
    axes.set_xticks(tenths)
    axes.set_ylim(bottom=0)
    return save_plot(figure, folder / f"{record.name}-{side}")


def _unplaced(record: PositionRecord, group: str) -> str:
    without = record.n_hits[group] - record.n_placed[group]
    return f", {without:,} without a place" if without else ""


def _split(split: str) -> str:
    return "" if split == "test" else f", {split}"


def _filled(cells: list[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))]
