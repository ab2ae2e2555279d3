"""Leaves out running heads, feet and page numbers. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

from engine.readers.pdf_layout import body_size
from engine.readers.pdf_lines import Line

_MIN_PAGES = 3  # repetition on fewer pages is not counted
_SHARE_OF_PAGES = 0.3
_NEAR_PAGES = 6  # a head that names the chapter repeats within this many pages
_EDGE_LINES = 2  # at the top and at the bottom of a page; a page number can be alone there
_MIN_LINES = 4  # a slide of three lines has no running heads of its own
_MAX_EDGE_LINES = 4  # where heads or feet have several lines
_MAX_CHARS = 150
_LARGEST = 1.3  # times the body size; a larger line is a heading
_PAGE_NUMBER = re.compile(
    r"[-\u2013\u2014\s]*(?:[Pp](?:age|AGE)\s+)?(?:\d{1,4}|[ivxlc]{1,7}|[IVXLC]{2,7})"
    r"(?:\s*(?:of|/)\s*\d{1,4})?[-\u2013\u2014\s]*$"
)
_MAX_DIGITS = 5
_ROMAN = re.compile(r"[ivxlc]{1,7}")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_Place: TypeAlias = tuple[str, float, int]  # mask, size, height on the page
_PageNumber: TypeAlias = tuple[bool, int, int]  # is Arabic, number minus index of the page, height on the page


def without_running_heads(lines: Sequence[Line]) -> list[Line]:
    """Leave out running heads and page numbers.

    A line at the edge of a page is left out if it repeats on many pages, or at the same
    height on pages nearby, whatever its digits; or if it starts or ends with a number
    that counts with the pages; or if it is one of the outermost lines and is nothing but
    a page number. A line in large type is a title and stays, unless it repeats on many
    pages.
    """
    largest = _LARGEST * body_size(lines)
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    edges = [_edges(page, _MAX_EDGE_LINES) for page in pages if len(page) >= _MIN_LINES]
    counts = Counter(mask for edge in edges for mask in {_mask(line) for line in edge})
    enough = max(_MIN_PAGES, len(pages) * _SHARE_OF_PAGES)
    on_many = {mask for mask, n_pages in counts.items() if n_pages >= enough}
    nearby, counting = _repeated_nearby(edges), _counting(edges)
    kept: list[Line] = []
    for page in pages:
        edge = _edges(page, _MAX_EDGE_LINES) or page
        outermost = {id(line) for line in _edges(page, _EDGE_LINES)}
        dropped = {
            id(line)
            for line in edge
            if _mask(line) in on_many
            or (line.size <= largest and id(line) in outermost and _PAGE_NUMBER.match(line.text))
            or (line.size <= largest and ((line.page, _place(line)) in nearby or counting & _page_numbers(line)))
        }
        kept.extend(line for line in page if id(line) not in dropped)
    return kept


def _edges(page: Sequence[Line], n_lines: int) -> list[Line]:
    """The lines at the edges of a page, by height: pdfium can list a footer first."""
    by_place = sorted(page, key=lambda line: -line.y)
    n_lines = min(n_lines, len(page) // _MIN_LINES)
    return by_place[:n_lines] + by_place[len(page) - n_lines :]


def _mask(line: Line) -> tuple[str, float]:
    """A key for lines that differ only in digits; the size separates a title from a running head of its words."""
    return re.sub(r"\d+|\b[ivxlc]+\b", "0", line.text).casefold(), line.size


def _place(line: Line) -> _Place:
    return *_mask(line), round(line.y)


def _repeated_nearby(edges: Sequence[Sequence[Line]]) -> set[tuple[int, _Place]]:
    """Page and place of the edge lines that are also on two other pages nearby."""
    of_place: dict[_Place, list[int]] = defaultdict(list)
    for edge in edges:
        for place in {_place(line) for line in edge}:
            of_place[place].append(edge[0].page)
    return {
        (page, place)
        for place, pages in of_place.items()
        for number, page in enumerate(pages)
        if sum(abs(page - other) <= _NEAR_PAGES for other in pages[max(0, number - 2) : number + 3]) >= _MIN_PAGES
    }


def _counting(edges: Sequence[Sequence[Line]]) -> set[_PageNumber]:
    """Numbers that count with the pages on at least three pages."""
    counts = Counter(number for edge in edges for number in set().union(*map(_page_numbers, edge)))
    return {number for number, n_pages in counts.items() if n_pages >= _MIN_PAGES}


def _page_numbers(line: Line) -> set[_PageNumber]:
    """The first and the last word of a line, read as the number of its page."""
    if len(line.text) > _MAX_CHARS:
        return set()
    words = line.text.split()
    values = {(word.isdecimal(), value) for word in (words[0], words[-1]) if (value := _value(word)) is not None}
    return {(is_arabic, value - line.page, round(line.y)) for is_arabic, value in values}


def _value(word: str) -> int | None:
    """The value of an Arabic or a small Roman number; None for another word."""
    if word.isdecimal():
        return int(word) if len(word) <= _MAX_DIGITS else None
    if not _ROMAN.fullmatch(word):
        return None
    values = [_ROMAN_DIGITS[digit] for digit in word]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
