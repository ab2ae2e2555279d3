"""Moves figures, tables and footnotes that interrupt a sentence behind its paragraph. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.readers.pdf_lines import Line

MAX_PARAGRAPH_CHARS = 8_000  # a longer one is not joined any further
_MAX_PARAGRAPHS = 12  # between the halves of a sentence
_SAME_SIZE = 0.03  # times the body size
_SHORT = 4.0  # times the type size; a line that ends this close to the edge is full
_NARROW = 0.6  # of the column; labels and cells are narrower
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|algorithm|listing|scheme|plate)\s*[\dIVXA-Z]", re.IGNORECASE)
_GOES_ON = re.compile(r"[^\W\d_]+[,.;:)]*(?:\s|$)")  # a word, no formula
_OPEN_END = re.compile(r"(?:[^\W\d_][,\u00ad\u2010-]?|,)$")  # no full stop


def floats_last(
    paragraphs: Sequence[range], lines: Sequence[Line], edges: Sequence[float], size: float, headings: frozenset[int]
) -> list[list[int]]:
    """Join the halves of an interrupted paragraph, and put the interruption after it.

    Args:
        paragraphs: the line numbers of each, in the order of the page.
        lines: all lines.
        edges: for each line, the right edge of the full lines of its column, in points.
        size: of body text, in points.
        headings: first lines of headings; nothing moves across one.

    Returns:
        The line numbers of each paragraph; every line is there once.
    """
    ordered: list[list[int]] = []
    number = 0
    while number < len(paragraphs):
        whole = list(paragraphs[number])
        floating: list[list[int]] = []
        n_chars = _n_chars(paragraphs[number], lines)
        following = number + 1
        if paragraphs[number].start not in headings:
            while n_chars <= MAX_PARAGRAPH_CHARS:
                rest = _rest(paragraphs, following, whole[-1], lines, edges, size, headings)
                if rest is None:
                    break
                floating.extend(list(paragraph) for paragraph in paragraphs[following:rest])
                whole.extend(paragraphs[rest])
                n_chars += _n_chars(paragraphs[rest], lines)
                following = rest + 1
        ordered.extend([whole, *floating])
        number = following
    return ordered


def _n_chars(paragraph: range, lines: Sequence[Line]) -> int:
    return sum(len(lines[number].text) for number in paragraph)


def _rest(
    paragraphs: Sequence[range],
    following: int,
    last: int,
    lines: Sequence[Line],
    edges: Sequence[float],
    size: float,
    headings: frozenset[int],
) -> int | None:
    """The number of the paragraph that continues the open sentence of line `last`; None without one."""
    before = lines[last]
    is_full = before.right >= edges[last] - _SHORT * before.size and " " in before.text
    if not is_full or not _is_body(before, size) or not _OPEN_END.search(before.text):
        return None
    for number in range(following, min(following + _MAX_PARAGRAPHS, len(paragraphs))):
        paragraph = paragraphs[number]
        line = lines[paragraph.start]
        if paragraph.start in headings:
            return None
        is_narrow = all(
            lines[place].right < lines[place].left + _NARROW * (edges[place] - line.left) for place in paragraph
        )
        if (
            _is_body(line, size)
            and line.text[0].islower()
            and _GOES_ON.match(line.text)
            and (not is_narrow or len(paragraph) == 1)
        ):
            return number
        if _is_body(line, size) and not is_narrow and not _CAPTION.match(line.text):
            return None
    return None


def _is_body(line: Line, size: float) -> bool:
    return abs(line.size - size) <= _SAME_SIZE * size
