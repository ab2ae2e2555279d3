"""Leaves out line numbers in a margin, as manuscripts, transcripts and patents have them. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from engine.readers.pdf_lines import Line

# Printers mark the last lines: S32, R33.
_ALONE = re.compile(r"[A-Z]?(\d{1,4})$")
_BEFORE_TEXT = re.compile(r"[A-Z]?(\d{1,4})\s+(?=\S)")
_AFTER_TEXT = re.compile(r"(?<=\S)\s+[A-Z]?(\d{1,4})$")
_STEPS = (1, 5, 10)
_MAX_SKIPPED = 2  # steps; a formula may hide the number of its line
_MIN_CHAIN = 6  # numbers that count up, on a page
_MIN_CHAIN_OF_STEPS = 4  # if only every fifth or tenth line has a number
_SHARE_OF_PAGES = 0.5
_SHARE_BESIDE = 0.9  # of the other lines are right of the numbers, or left of them
_MIN_LINES = 8  # a page with fewer lines is not checked
_SAME_PLACE = 2.0  # points
_MAX_DIGIT = 12.0  # points; a longer number starts at most this much further left


@dataclass(frozen=True, slots=True)
class _Number:
    """A line that is an integer, or starts or ends with one."""

    place: int  # of the line on its page
    value: int
    n_signs: int
    left: float
    where: re.Pattern[str]  # `_ALONE`, `_BEFORE_TEXT` or `_AFTER_TEXT`


def without_line_numbers(lines: Sequence[Line]) -> list[Line]:
    """Leave out line numbers, if half of the pages of `_MIN_LINES` lines or more have a column of them in a margin.

    Args:
        lines: lines of one page are neighbours.
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
    left = min(number.left for number in chain) - _MAX_DIGIT
    right = max((page[number.place].right for number in chain if number.where is _ALONE), default=left) + _SAME_PLACE
    kept = []
    for place, line in enumerate(page):
        number = numbered.get(place)
        if number is None and not (left <= line.left <= line.right <= right and _ALONE.match(line.text)):
            kept.append(line)
        elif number is not None and number.where is _BEFORE_TEXT:
            text = _BEFORE_TEXT.sub("", line.text, count=1)
            kept.append(replace(line, text=text, left=line.text_left, text_left=line.text_left))
        elif number is not None and line.trailing is not None:
            text = _AFTER_TEXT.sub("", line.text)
            kept.append(replace(line, text=text, right=line.trailing.text_right, trailing=None))
    return kept


def _chain(page: Sequence[Line]) -> list[_Number]:
    """The longest column of numbers in a margin that count up from line to line; [] without one."""
    numbers = [number for place, line in enumerate(page) for number in _numbers(place, line)]
    numbers.sort(key=lambda number: (-page[number.place].y, number.left))
    found: list[_Number] = []
    for step in _STEPS:
        chain = _longest(numbers, page, step)
        if len(chain) >= (_MIN_CHAIN if step == 1 else _MIN_CHAIN_OF_STEPS) and len(chain) > len(found):
            found = chain
    return found if found and _is_in_margin(found, page) else []


def _numbers(place: int, line: Line) -> Iterator[_Number]:
    if match := _ALONE.match(line.text):
        yield _Number(place, int(match[1]), len(line.text), line.left, _ALONE)
        return
    if (match := _BEFORE_TEXT.match(line.text)) and line.text_left > line.left:
        yield _Number(place, int(match[1]), len(match[0].rstrip()), line.left, _BEFORE_TEXT)
    if line.trailing is not None and (match := _AFTER_TEXT.search(line.text)):
        yield _Number(place, int(match[1]), len(match[0].lstrip()), line.trailing.left, _AFTER_TEXT)


def _longest(numbers: Iterable[_Number], page: Sequence[Line], step: int) -> list[_Number]:
    chains: list[list[_Number]] = []
    awaiting: dict[int, list[_Number]] = {}  # chains by their last value
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
    if page[before.place].y - page[number.place].y < _SAME_PLACE:
        return False
    if before.n_signs == number.n_signs:
        return abs(before.left - number.left) <= _SAME_PLACE
    return -_SAME_PLACE <= before.left - number.left <= _MAX_DIGIT


def _is_in_margin(chain: Sequence[_Number], page: Sequence[Line]) -> bool:
    """Whether nearly all lines are right of the numbers, or nearly all left of them."""
    numbered = {number.place for number in chain}
    others = [line for place, line in enumerate(page) if place not in numbered and not _ALONE.match(line.text)]
    before, after = ([one for one in chain if one.where is where] for where in (_BEFORE_TEXT, _AFTER_TEXT))
    rights = [page[one.place].right for one in chain if one.where is _ALONE]
    if not after:
        edge = max(rights) if rights else min(page[one.place].text_left for one in before)
        n_right_of = len(before) + sum(line.left >= edge - _SAME_PLACE for line in others)
        if n_right_of >= _SHARE_BESIDE * (len(others) + len(before)):
            return True
    if before:
        return False
    edge = min(one.left for one in chain)
    n_left_of = len(after) + sum(line.right <= edge + _SAME_PLACE for line in others)
    return n_left_of >= _SHARE_BESIDE * (len(others) + len(after))
