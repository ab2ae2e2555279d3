"""Dot plots with intervals, as SVG: a picture shows cells of a table that was drawn from runs, and nothing else."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from xml.sax.saxutils import escape

import numpy as np

_CELL = re.compile(r"([+-]?\d+\.\d+) \[([+-]?\d+\.\d+), ([+-]?\d+\.\d+)\]")
_WORDS = re.compile(r", [\d,]+ to [\d,]+ words")  # of a class of lengths, which differ between corpora
_ROW, _PANEL, _GAP, _CHARACTER, _LINE, _BELOW = 18, 170, 34, 7.2, 15, 40  # pixels
THEMES = {  # text, lines, dots, dots of our own systems
    "light": ("#333333", "#d0d0d0", "#6e7781", "#0072B2"),
    "dark": ("#e6edf3", "#3d444d", "#8b949e", "#56B4E9"),
}


@dataclass(frozen=True)
class Picture:
    """Which cells of a table are drawn: a row for each label, and a panel for each group of rows or each column."""

    table: str
    labels: Sequence[str]  # columns
    value: str = ""  # column with intervals; "" for every column that has some
    groups: Sequence[str] = ()  # columns
    title: str = ""  # of the values, if that is not the column
    ours: str = r"^(evidence|words|longmatch)"  # labels that are drawn in another colour


PICTURES: Mapping[str, Picture] = {
    "retrieval": Picture("retrieval", ("System",), "nDCG@10 [95 %]", ("Task (queries)",)),
    "peers": Picture("peers", ("Peer",), "nDCG@10 [95 %]", ("Task (queries)",)),
    "facets": Picture("facets", ("Ranked by",), "nDCG@20 [95 %]", ("Encoder (queries)",)),
    **{
        f"architectures-{name}": Picture("architectures", (head,), title="nDCG@10 [95 %]")
        for name, head in (("document", "Document vector"), ("full", "Full score"))
    },
    "faithfulness": Picture(
        "faithfulness", ("Corpus", "Encoder", "Removed from (queries)"), "minus random [95 %]", ("Measure",)
    ),
    "planted": Picture("planted", ("Plantings",), "Named first [95 %]", ("Corpus (pairs)", "Encoder")),
}
Interval = tuple[float, float, float]  # value, low, high


def read_tables(text: str) -> list[list[dict[str, str]]]:
    """The tables of a text in Markdown: their rows, by column."""
    lines = [line[2:-2].split(" | ") if line.startswith("| ") else [] for line in text.splitlines()]
    tables = [list(rows) for is_table, rows in groupby(lines, key=bool) if is_table]
    return [[dict(zip(rows[0], row, strict=False)) for row in rows[2:]] for rows in tables]


def panels(picture: Picture, text: str) -> dict[str, dict[str, Interval]]:
    """The intervals of each panel by label, from the tables of a text that have the columns."""
    found: dict[str, dict[str, Interval]] = {}
    for row in chain.from_iterable(read_tables(text)):
        if not all(name in row for name in (*picture.labels, *picture.groups)):
            continue
        label = _WORDS.sub("", ", ".join(row[name] for name in picture.labels))
        for column in [picture.value] if picture.value else row:
            if cell := _CELL.match(row.get(column, "")):
                panel = found.setdefault(", ".join(row[name] for name in picture.groups) or column, {})
                if label in panel:
                    raise ValueError(f"{label!r} is twice in a panel of {picture.table}; add a column to its groups")
                panel[label] = float(cell[1]), float(cell[2]), float(cell[3])
    return found


def drawn_picture(picture: Picture, text: str, theme: str) -> str:
    """The picture as SVG, in the colours of a theme; "" if no table has its cells."""
    of_panels = panels(picture, text)
    if not of_panels:
        return ""
    ink, line, dot, ours = THEMES[theme]
    labels = list(dict.fromkeys(chain.from_iterable(of_panels.values())))
    ticks = _ticks([end for rows in of_panels.values() for interval in rows.values() for end in interval])
    titles = [textwrap.wrap(panel, 24, break_long_words=False, break_on_hyphens=False) for panel in of_panels]
    panel_width = max(_PANEL, round(max(len(words) for title in titles for words in title) * _CHARACTER))
    left, top = round(max(map(len, labels)) * _CHARACTER) + 12, 20 + _LINE * max(map(len, titles))
    bottom = top + _ROW * len(labels)
    width, height = left + (panel_width + _GAP) * len(of_panels), bottom + _BELOW

    def text_at(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}"{more}>{escape(words)}</text>'

    parts = [text_at(left - 8, top + _ROW * (at + 0.5) + 4, label, "end") for at, label in enumerate(labels)]
    for number, (title, rows) in enumerate(zip(titles, of_panels.values(), strict=True)):
        start = left + (panel_width + _GAP) * number

        def x_of(value: float, start: float = start) -> float:
            return start + panel_width * (value - ticks[0]) / (ticks[-1] - ticks[0])

        for at, words in enumerate(title):
            above = top - 10 - _LINE * (len(title) - 1 - at)
            parts.append(text_at(start + panel_width / 2, above, words, more=' font-weight="bold"'))
        for tick in ticks:
            mark = 2 if tick == 0 and ticks[0] < 0 else 1
            parts.append(_line(x_of(tick), top - 4, x_of(tick), bottom, line, mark))
            parts.append(text_at(x_of(tick), bottom + 14, f"{tick:g}"))
        for label, (value, low, high) in rows.items():
            y = top + _ROW * (labels.index(label) + 0.5)
            colour = ours if re.search(picture.ours, label) else dot
            parts.append(_line(x_of(low), y, x_of(high), y, colour, 2))
            parts.append(f'<circle cx="{x_of(value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    parts.append(text_at(left + (width - left - _GAP) / 2, height - 6, picture.title or picture.value))
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>', *parts, "</svg>", ""])


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _ticks(values: Sequence[float]) -> list[float]:
    """Three to six round numbers around all values."""
    low, high = min(values), max(values)
    step = next(step for step in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 100.0) if (high - low) / step <= 5.2)
    first, last = int(np.floor(low / step)), int(np.ceil(high / step))
    return [round(number * step, 2) for number in range(first, max(last, first + 1) + 1)]
