"""Tables and plots of slices by length and by position, drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.markdown import markdown, origins
from benchmarks.plots import QUIET_COLOUR, Curve, draw_curves, new_figure, save_plot
from benchmarks.slices.records import N_TENTHS, PositionRecord

_GROUPS = {"all": "hits", "relevant": "relevant hits"}
_POSITION_NOTE = (
    "Share of the contributions of passages and words that lies in each tenth of the text: a hit counts 1, then a "
    "query counts 1; 0.100 everywhere is no bias. Intervals of 95 % by bootstrap over queries are in the records. "
    "Whole documents: the share of a score that the document vectors gave, over all hits; one that they gave entirely "
    "has no place in the text."
)


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
