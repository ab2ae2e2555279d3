"""Lines of text in styles, measured in columns of a terminal. Prints nothing, and knows no colours.

Counts, sizes and durations as text.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from engine.text.cleaning import safe


class Style(StrEnum):
    """The role of a stretch of a line, which determines its colour in a terminal."""

    PLAIN = ""
    TITLE = "title"
    NUMBER = "number"
    MATCH = "match"  # a word that both texts have
    FAINT = "faint"
    DELETED = "deleted"
    INSERTED = "inserted"


_GAP = 2  # columns between the cells of a table
_MOST_PADDED = 40  # columns of a cell of a table; one long name does not move all that follows
_NO_COLUMN = frozenset(["Mn", "Me", "Cf"])  # Unicode categories of combining and invisible characters


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of a line in one style."""

    text: str
    style: Style = Style.PLAIN


Line: TypeAlias = tuple[Run, ...]


def line(*parts: str | Run) -> Line:
    """A line of runs and plain texts, which are made `safe`."""
    runs = (Run(part) if isinstance(part, str) else part for part in parts)
    return tuple(Run(safe(run.text), run.style) for run in runs if run.text)


def columns(text: str | Line) -> int:
    """The columns of a text in a terminal: two for a wide character, none for a combining or invisible one."""
    if not isinstance(text, str):
        return sum(columns(run.text) for run in text)
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(whole: Line, width: int) -> Line:
    """A line in at most `width` columns, with "…" where it was cut."""
    if columns(whole) <= width:
        return whole
    runs: list[Run] = []
    room = width - 1
    for run in whole:
        text = cut_text(run.text, room)
        runs.append(Run(text, run.style))
        room -= columns(text)
        if text != run.text:
            break
    while runs and not runs[-1].text.rstrip():
        runs.pop()
    if runs:
        runs[-1] = Run(runs[-1].text.rstrip() + "…", runs[-1].style)
    return tuple(runs) if runs else (Run("…"),)


def cut_text(text: str, width: int) -> str:
    """The longest beginning of a text that takes at most `width` columns."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > width:
            return text[:place]
    return text


def shortened(text: str, width: int) -> str:
    """A text on one line of at most `width` columns, with "…" where it was cut."""
    return plain([cut(line(text), width)])


def pad(whole: Line, width: int) -> Line:
    """A line filled with blanks to `width` columns."""
    return (*whole, Run(" " * max(0, width - columns(whole))))


def plain(lines: Iterable[Line]) -> str:
    """Lines as text without styles."""
    return "\n".join("".join(run.text for run in shown) for shown in lines)


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> list[Line]:
    """Rows in columns as wide as their widest cell of at most 40 columns; the last column is not padded."""
    cells = [[safe(cell) for cell in row] for row in ([head] if head else []) + list(rows)]
    widths = [
        max((n for cell in column if (n := columns(cell)) <= _MOST_PADDED), default=0)
        for column in zip(*cells, strict=True)
    ]
    lines = []
    for number, row in enumerate(cells):
        first = Style.FAINT if head and not number else Style.TITLE
        rest = Style.FAINT if head and not number else Style.PLAIN
        runs = [
            Run(cell + " " * (_GAP + max(0, width - columns(cell))), rest)
            for cell, width in zip(row, widths, strict=True)
        ]
        runs[0] = Run(runs[0].text, first)
        runs[-1] = Run(runs[-1].text.rstrip(), runs[-1].style)
        lines.append(tuple(runs))
    return lines


def pages_label(place: Mapping[str, Any]) -> str:
    """The pages and pins of a place in `engine.report.contract`, as "pp. 3–5" or "[0041]"; "" for one without."""
    first, last = place["page"], place["last_page"]
    pages = "" if first is None else f"p. {first}" if first == last else f"pp. {first}–{last}"
    return ", ".join(filter(None, (pages, place["pin"])))


def _columns(character: str) -> int:
    if unicodedata.category(character) in _NO_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def counted(n: int, noun: str) -> str:
    """A number with its noun: 1 document, 1,234 documents."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def megabytes(size: float) -> str:
    """A number of bytes as a text in megabytes (10^6 bytes)."""
    return f"{size / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """A number of seconds as text, such as "2 h 5 min", "3 min 20 s" or "1.5 s"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
