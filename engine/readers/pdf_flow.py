"""Writes the lines of a PDF as running text with headings and page offsets. Pure functions of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.readers.pdf_columns import right_edges
from engine.readers.pdf_floats import MAX_PARAGRAPH_CHARS, floats_last
from engine.readers.pdf_headings import HeadingLines
from engine.readers.pdf_layout import body_size, breaks_line, joined, pitch_of, starts_paragraph, vocabulary
from engine.readers.pdf_lines import Line
from engine.text.spans import Heading


class Flow:
    """Text that grows paragraph by paragraph.

    Args:
        lines: of the whole document, in reading order.
        headings: by the number of their first line.
    """

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
