"""Numbers of Word's lists and headings, counted as Word counts them; a document stores only the rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from docx.oxml.ns import qn

_Element: TypeAlias = Any
N_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_ROMAN = 4_000
BULLET = "-"


@dataclass(frozen=True, slots=True)
class _Level:
    """How the numbers of a level look: "%1.%2", with the format of each and the first number."""

    text: str
    form: str
    start: int
    style: str  # id of the paragraph style that stands for the level


@dataclass(slots=True)
class _List:
    """A numbering definition and its counters; several lists can share it."""

    levels: dict[int, _Level]
    counters: list[int | None] = field(default_factory=lambda: [None] * N_LEVELS)


class Numbering:
    """The labels of numbered paragraphs; call `label` in the order of the document."""

    def __init__(self, root: _Element | None) -> None:
        self._lists: dict[str, _List] = {}
        self._starts: dict[str, dict[int, int]] = {}  # first numbers by level, of lists that override them
        if root is None:
            return
        abstract = {
            one.get(qn("w:abstractNumId"), ""): _List(_levels(one)) for one in root.iterchildren(qn("w:abstractNum"))
        }
        for number in root.iterchildren(qn("w:num")):
            definition = abstract.get(_value(number, "w:abstractNumId"))
            if definition is not None:
                num_id = number.get(qn("w:numId"), "")
                self._lists[num_id] = definition
                self._starts[num_id] = _overrides(number)

    def level_of_style(self, num_id: str, style: str) -> int:
        """The level of a list that a style stands for; 0 where there is none."""
        numbers = self._lists.get(num_id)
        levels = numbers.levels.items() if numbers is not None else ()
        return next((level for level, one in levels if one.style == style), 0)

    def label(self, num_id: str, level: int) -> str:
        """Count one paragraph; returns its label, `BULLET`, or "" where it has none."""
        numbers = self._lists.get(num_id)
        own = numbers.levels.get(level) if numbers is not None else None
        if numbers is None or own is None:
            return BULLET
        for place, start in self._starts.pop(num_id, {}).items():
            numbers.counters[place] = start - 1
            numbers.counters[place + 1 :] = [None] * (N_LEVELS - place - 1)
        counters = numbers.counters
        for above in range(level):
            if counters[above] is None:
                counters[above] = numbers.levels[above].start if above in numbers.levels else 1
        before = counters[level]
        counters[level] = own.start if before is None else before + 1
        counters[level + 1 :] = [None] * (N_LEVELS - level - 1)
        if own.form == "bullet":
            return BULLET
        return "" if own.form == "none" else _PLACE.sub(lambda match: _shown(numbers, int(match[1]) - 1), own.text)


def _shown(numbers: _List, level: int) -> str:
    count = numbers.counters[level]
    return _formatted(count, numbers.levels[level].form) if count is not None and level in numbers.levels else ""


def _formatted(number: int, form: str) -> str:
    if form.endswith("Roman") and 0 < number < _MAX_ROMAN:
        text = _roman(number)
    elif form.endswith("Letter") and 0 < number < _MAX_ROMAN:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)  # after z come aa, bb
    else:
        text = f"{number:02}" if form == "decimalZero" else str(number)
    return text.upper() if form.startswith("upper") else text


def _roman(number: int) -> str:
    text = ""
    for value, digits in _ROMAN:
        text += digits * (number // value)
        number %= value
    return text


def _levels(abstract: _Element) -> dict[int, _Level]:
    levels = {}
    for element in abstract.iterchildren(qn("w:lvl")):
        level = _number(element.get(qn("w:ilvl"), ""), 0)
        form = _value(element, "w:numFmt") or "decimal"
        start = _number(_value(element, "w:start"), 1)
        levels[level] = _Level(_value(element, "w:lvlText"), form, start, _value(element, "w:pStyle"))
    return {level: one for level, one in levels.items() if level < N_LEVELS}


def _overrides(number: _Element) -> dict[int, int]:
    starts = {}
    for override in number.iterchildren(qn("w:lvlOverride")):
        level, start = _number(override.get(qn("w:ilvl"), ""), 0), _value(override, "w:startOverride")
        if start and level < N_LEVELS:
            starts[level] = _number(start, 1)
    return starts


def _value(element: _Element, name: str) -> str:
    child = element.find(qn(name))
    return str(child.get(qn("w:val"), "")) if child is not None else ""


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else default
