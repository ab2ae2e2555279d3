"""Leaves out line numbers in a margin, as manuscripts, transcripts and patents have them. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from engine.readers.pdf_lines import Line

_ALONE = re.compile(r"[A-Z]?(\d{1,4})$")  # printers mark the last lines: S32, R33
_BEFORE_TEXT = re.compile(r"(\d{1,4})\s+(?=\S)")
_STEPS = (1, 5, 10)
_MAX_SKIPPED = 2  # steps; a formula may hide the number of its line
_MIN_CHAIN = 6  # numbers that count up, on a page
_MIN_CHAIN_OF_STEPS = 4  # if only each fifth or tenth line has its number
_SHARE_OF_PAGES = 0.5
_SHARE_BESIDE = 0.9  # of the other lines are right of the numbers, or left of them
_MIN_LINES = 8  # a page of fewer lines says nothing
_SAME_PLACE = 2.0  # points
_MAX_DIGIT = 12.0  # points; a longer number starts at most so much further left


@dataclass(frozen=True, slots=True)
class _Number:
    """A line that is, or starts with, an integer."""

    place: int  # of the line on its page
    value: int
    n_digits: int
    is_alone: bool


def without_line_numbers(lines: Sequence[Line]) -> list[Line]:
    """Leave out the numbers of lines, if half of the pages have a column of them in a margin.

    Args:
        lines: those of a page are neighbours.
    """
    pages = [list(group) for _, group in groupby(lines, key=lambda line: line.page)]
    chains = [_chain(page) if len(page) >= _MIN_LINES else [] for page in pages]
    n_full = sum(len(page) >= _MIN_LINES for page in pages)
    if not n_full or sum(map(bool, chains)) < _SHARE_OF_PAGES * n_full:
        return list(lines)
    kept: list[Line] = []
    for page, chain in zip(pages, chains, strict=True):
        kept.extend(_without(page, chain))
    return kept


def _without(page: Sequence[Line], chain: Sequence[_Number]) -> Iterable[Line]:
    if not chain:
        return page
    numbered = {number.place: number for number in chain}
    left = min(page[place].left for place in numbered) - _MAX_DIGIT
    right = max((page[number.place].right for number in chain if number.is_alone), default=left) + _SAME_PLACE
    kept = []
    for place, line in enumerate(page):
        number = numbered.get(place)
        if number is None and not (left <= line.left <= line.right <= right and _ALONE.match(line.text)):
            kept.append(line)
        elif number is not None and not number.is_alone:
            text = _BEFORE_TEXT.sub("", line.text, count=1)
            kept.append(replace(line, text=text, left=line.text_left, text_left=line.text_left))
    return kept


def _chain(page: Sequence[Line]) -> list[_Number]:
    """The longest column of numbers that count from line to line in a margin; [] without one."""
    numbers = [number for place, line in enumerate(page) if (number := _number(place, line))]
    numbers.sort(key=lambda number: (-page[number.place].y, page[number.place].left))
    found: list[_Number] = []
    for step in _STEPS:
        chain = _longest(numbers, page, step)
        if len(chain) >= (_MIN_CHAIN if step == 1 else _MIN_CHAIN_OF_STEPS) and len(chain) > len(found):
            found = chain
    return found if found and _is_in_margin(found, page) else []


def _number(place: int, line: Line) -> _Number | None:
    if match := _ALONE.match(line.text):
        return _Number(place, int(match[1]), len(match[1]), is_alone=True)
    if (match := _BEFORE_TEXT.match(line.text)) and line.text_left > line.left:
        return _Number(place, int(match[1]), len(match[1]), is_alone=False)
    return None


def _longest(numbers: Iterable[_Number], page: Sequence[Line], step: int) -> list[_Number]:
    chains: list[list[_Number]] = []
    awaiting: dict[int, list[_Number]] = {}  # the last value of a chain
    for number in numbers:
        befores = (awaiting.get(number.value - step * skipped) for skipped in range(1, _MAX_SKIPPED + 2))
        chain = next((before for before in befores if before and _is_below(before[-1], number, page)), None)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(number)
        awaiting[number.value] = chain
    return max(chains, key=len, default=[])


def _is_below(before: _Number, number: _Number, page: Sequence[Line]) -> bool:
    upper, lower = page[before.place], page[number.place]
    if upper.y - lower.y < _SAME_PLACE:
        return False
    if before.n_digits == number.n_digits:
        return abs(upper.left - lower.left) <= _SAME_PLACE
    return -_SAME_PLACE <= upper.left - lower.left <= _MAX_DIGIT


def _is_in_margin(chain: Sequence[_Number], page: Sequence[Line]) -> bool:
    numbered = {number.place for number in chain}
    others = [line for place, line in enumerate(page) if place not in numbered and not _ALONE.match(line.text)]
    rights = [page[number.place].right for number in chain if number.is_alone]
    left_column = max(rights) if rights else min(page[number.place].text_left for number in chain)
    n_right_of = sum(line.left >= left_column - _SAME_PLACE for line in others)
    if n_right_of >= _SHARE_BESIDE * len(others):
        return True
    left = min(page[number.place].left for number in chain)
    is_all_alone = len(rights) == len(chain)
    return is_all_alone and sum(line.right <= left + _SAME_PLACE for line in others) >= _SHARE_BESIDE * len(others)
