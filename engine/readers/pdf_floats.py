"""Writes the lines of a PDF as running text, with floats behind the paragraphs that they interrupt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engine.readers.pdf_headings import HeadingLines
from engine.readers.pdf_layout import (
    body_size,
    breaks_line,
    joined,
    pitch_of,
    right_edges,
    starts_paragraph,
    vocabulary,
)
from engine.readers.pdf_lines import Line
from engine.text.segmentation import Heading


class Flow:
    """Text that grows paragraph by paragraph."""

    def __init__(self, lines: Sequence[Line], headings: Mapping[int, HeadingLines]) -> None:
        self.headings: list[Heading] = []
        self._lines = lines
        self._known = vocabulary(lines)
        self._size = body_size(lines)
        self._pitch = pitch_of(lines, self._size)
        self._edges = right_edges(lines)
        self._parts: list[str] = []
        self._n_chars = 0
        self._page_starts: dict[int, int] = {}
        self._write(headings)

    @property
    def text(self) -> str:
        """The paragraphs, with a blank line between them."""
        return "".join(self._parts)

    def pages(self, n_pages: int) -> tuple[int, ...]:
        """Offset of each page; a page without text starts where the next one does."""
        starts, following = [], self._n_chars
        for page in reversed(range(n_pages)):
            following = min(following, self._page_starts.get(page, following))
            starts.append(following)
        return (0, *reversed(starts[:-1])) if starts else ()

    def _write(self, headings: Mapping[int, HeadingLines]) -> None:
        paragraphs = floats_last(self._paragraphs(headings), self._lines, self._edges, self._size, frozenset(headings))
        for place, paragraph in enumerate(paragraphs):
            heading = headings.get(paragraph[0])
            if heading is not None:
                title = " ".join(self._lines[number].text for number in range(heading.first, heading.stop))
                self.headings.append(Heading(title.replace("\u00ad", ""), heading.level, self._n_chars))
            self._add(self._joined(paragraph) + ("\n\n" if place + 1 < len(paragraphs) else ""))

    def _paragraphs(self, headings: Mapping[int, HeadingLines]) -> list[range]:
        starts: list[int] = []
        stop, n_chars = 0, 0
        for number, line in enumerate(self._lines):
            heading = headings.get(number)
            if heading is not None:
                stop = heading.stop
            if heading is not None or (
                number >= stop and (number == stop or n_chars > MAX_PARAGRAPH_CHARS or self._starts_paragraph(number))
            ):
                starts.append(number)
                n_chars = 0
            n_chars += len(line.text) + 1
        return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(self._lines)], strict=True)]

    def _starts_paragraph(self, number: int) -> bool:
        return starts_paragraph(self._lines[number - 1], self._lines[number], self._pitch, self._edges[number - 1])

    def _joined(self, paragraph: Sequence[int]) -> str:
        text = ""
        for place, number in enumerate(paragraph):
            line = self._lines[number]
            before = paragraph[place - 1]
            if not place:
                text = line.text
            elif breaks_line(self._lines[before], self._edges[before]):
                text += "\n" + line.text
            else:
                text = joined(text, line.text, self._known)
            self._page_starts.setdefault(line.page, self._n_chars + len(text) - len(line.text))
        return text.replace("\u00ad", "-")

    def _add(self, part: str) -> None:
        self._parts.append(part)
        self._n_chars += len(part)


MAX_PARAGRAPH_CHARS = 8_000  # a longer one is not joined any further
_MAX_PARAGRAPHS = 12  # between the halves of a sentence
_SAME_SIZE = 0.03  # times the body size
_SHORT = 4.0  # times the type size; a line that ends this close to the edge is full
_NARROW = 0.6  # of the column; labels and cells are narrower
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|algorithm|listing|scheme|plate)\s*[\dIVXA-Z]", re.IGNORECASE)
_NOTE = re.compile(r"[\[(]?(?:\d{1,3}|[*\u2020\u2021\u00a7]{1,3})[\]).]?\s+\W?[^\W\d_]{2}")
_HYPHENS = "-\u00ad\u2010"
_GOES_ON = re.compile(r"[^\W\d_]+[,.;:)]*(?:\s|$)")  # a word, no formula
_OPEN_END = re.compile(r"(?:[^\W\d_][,\u00ad\u2010-]?|,)$")  # no full stop


def floats_last(
    paragraphs: Sequence[range], lines: Sequence[Line], edges: Sequence[float], size: float, headings: frozenset[int]
) -> list[list[int]]:
    """Join the halves of an interrupted paragraph, and put the interruption after it. Every line stays, once."""
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
        if _is_turn_of_page(before, line, [lines[other.start] for other in paragraphs[following:number]], size):
            return number
        if (
            _is_body(line, size)
            and line.text[0].islower()
            and _GOES_ON.match(line.text)
            and (not is_narrow or len(paragraph) == 1)
        ):
            return number
        is_note = line.page == before.page and _NOTE.match(line.text)
        if _is_body(line, size) and not is_narrow and not is_note and not _CAPTION.match(line.text):
            return None
    return None


def _is_turn_of_page(before: Line, line: Line, between: Sequence[Line], size: float) -> bool:
    """Whether only notes under the text stand between a line and one of the next page."""
    return (
        line.page == before.page + 1
        and _is_body(line, size)
        and line.left < before.left + 0.7 * size
        and bool(between)
        and before.text[-1] not in _HYPHENS
        and all(other.page == before.page and _NOTE.match(other.text) and other.y < before.y for other in between)
    )


def _is_body(line: Line, size: float) -> bool:
    return abs(line.size - size) <= _SAME_SIZE * size
