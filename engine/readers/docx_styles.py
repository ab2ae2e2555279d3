"""Styles and numbers of Word: names, outline levels and lists, counted as Word counts them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from engine.text.numbering import numeral

_Element: TypeAlias = Any
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def qn(name: str) -> str:
    """The tag of an element or an attribute of WordprocessingML."""
    return f"{_W}{name}"


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NumberOf:
    """The list that numbers a paragraph, and the level; each None where it is not given."""

    num_id: str | None
    level: int | None


@dataclass(frozen=True, slots=True)
class _Style:
    name: str  # in lower case
    based_on: str
    level: int | None
    number: NumberOf
    meaning: str | None  # of the type of its text: "raised", "hidden", "deleted", "" or None where it is not given


class Styles:
    """The styles of a document by their ids; time is linear in their number."""

    def __init__(self, root: _Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        for style in root.iterchildren(qn("style")) if root is not None else ():
            name = style.find(qn("name"))
            based_on = style.find(qn("basedOn"))
            own_name = (name.get(qn("val")) if name is not None else None) or ""
            self._styles[style.get(qn("styleId"), "")] = _Style(
                own_name.lower(),
                based_on.get(qn("val"), "") if based_on is not None else "",
                _level_by_name(own_name.lower()) if outline_level(style) is None else outline_level(style),
                number_of(style),
                _meaning(style),
            )
        self._levels: dict[str, int | None] = {}
        self._num_ids: dict[str, str | None] = {}
        self._num_levels: dict[str, int | None] = {}
        self._meanings: dict[str, str | None] = {}

    def name(self, style_id: str) -> str:
        """The name of a style, in lower case; its id where there is no such style."""
        style = self._styles.get(style_id)
        return style.name if style is not None else style_id.lower()

    def level(self, style_id: str) -> int | None:
        """Outline level of a style or of the nearest style that it is based on, from 0."""
        if style_id not in self._styles:
            return _level_by_name(style_id.lower())
        return self._inherited(style_id, self._levels, lambda style: style.level)

    def number(self, style_id: str) -> NumberOf:
        """The list of a style, or else of the nearest style that it is based on."""
        return NumberOf(
            self._inherited(style_id, self._num_ids, lambda style: style.number.num_id),
            self._inherited(style_id, self._num_levels, lambda style: style.number.level),
        )

    def meaning(self, run: _Element) -> str:
        """What the type of a run means: "raised", "hidden" or "deleted" (struck); "" for nothing."""
        properties = run.find(qn("rPr"))
        if properties is None:
            return ""
        own = _meaning(run)
        if own is not None:
            return own
        style = properties.find(qn("rStyle"))
        style_id = "" if style is None else str(style.get(qn("val"), ""))
        return self._inherited(style_id, self._meanings, lambda style: style.meaning) or ""

    def _inherited(self, style_id: str, known: dict[str, _T | None], own: Callable[[_Style], _T | None]) -> _T | None:
        """A value of a style, or of the styles it is based on; `known` breaks cycles and keeps the time linear."""
        chain = []
        value: _T | None = None
        while style_id in self._styles and style_id not in known:
            known[style_id] = None
            chain.append(style_id)
            value = own(self._styles[style_id])
            if value is not None:
                break
            style_id = self._styles[style_id].based_on
        else:
            value = known.get(style_id)
        known.update(dict.fromkeys(chain, value))
        return value


def _meaning(element: _Element) -> str | None:
    """What the type of a run or a style itself means; None where nothing is given."""
    properties = element.find(qn("rPr"))
    meaning = None
    for part in properties if properties is not None else ():
        value = part.get(qn("val"), "true") if isinstance(part.tag, str) else ""
        name = part.tag.rpartition("}")[2] if isinstance(part.tag, str) else ""
        if name in ("vanish", "strike", "dstrike"):
            is_on = value not in ("0", "false", "off")
            if is_on:
                return "hidden" if name == "vanish" else "deleted"
            meaning = meaning or ""
        elif name == "vertAlign":
            meaning = "raised" if value == "superscript" else ""
    return meaning


def outline_level(element: _Element) -> int | None:
    """The outline level of a paragraph or a style itself, from 0; 9 is body text."""
    level = element.find(f"{qn('pPr')}/{qn('outlineLvl')}")
    value = level.get(qn("val")) if level is not None else None
    return int(value) if value and value.isdecimal() and len(value) < 3 else None


def number_of(element: _Element) -> NumberOf:
    """The list of a paragraph or a style itself."""
    found = element.find(f"{qn('pPr')}/{qn('numPr')}")
    num_id = found.find(qn("numId")) if found is not None else None
    level = found.find(qn("ilvl")) if found is not None else None
    value = level.get(qn("val"), "") if level is not None else ""
    return NumberOf(
        num_id.get(qn("val")) if num_id is not None else None,
        int(value) if value.isdecimal() and len(value) < 3 else None,
    )


def _level_by_name(name: str) -> int | None:
    number = name.removeprefix("heading ")
    return int(number) - 1 if name != number and number in tuple("123456789") else None


N_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
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
            one.get(qn("abstractNumId"), ""): _List(_levels(one)) for one in root.iterchildren(qn("abstractNum"))
        }
        for number in root.iterchildren(qn("num")):
            definition = abstract.get(_value(number, "abstractNumId"))
            if definition is not None:
                num_id = number.get(qn("numId"), "")
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
    if form == "decimalZero":
        return f"{number:02}"
    sign = {"Roman": "i", "Letter": "a"}.get(form.removeprefix("lower").removeprefix("upper"), "1")
    return numeral(number, sign.upper() if form.startswith("upper") else sign)


def _levels(abstract: _Element) -> dict[int, _Level]:
    levels = {}
    for element in abstract.iterchildren(qn("lvl")):
        level = _number(element.get(qn("ilvl"), ""), 0)
        form = _value(element, "numFmt") or "decimal"
        start = _number(_value(element, "start"), 1)
        levels[level] = _Level(_value(element, "lvlText"), form, start, _value(element, "pStyle"))
    return {level: one for level, one in levels.items() if level < N_LEVELS}


def _overrides(number: _Element) -> dict[int, int]:
    starts = {}
    for override in number.iterchildren(qn("lvlOverride")):
        level, start = _number(override.get(qn("ilvl"), ""), 0), _value(override, "startOverride")
        if start and level < N_LEVELS:
            starts[level] = _number(start, 1)
    return starts


def _value(element: _Element, name: str) -> str:
    child = element.find(qn(name))
    return str(child.get(qn("val"), "")) if child is not None else ""


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else default
