"""Paragraph styles of Word: names, outline levels and numbers, inherited values included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from docx.oxml.ns import qn

_Element: TypeAlias = Any
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


class Styles:
    """The styles of a document by their ids; time is linear in their number."""

    def __init__(self, root: _Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        for style in root.iterchildren(qn("w:style")) if root is not None else ():
            name = style.find(qn("w:name"))
            based_on = style.find(qn("w:basedOn"))
            own_name = (name.get(qn("w:val")) if name is not None else None) or ""
            self._styles[style.get(qn("w:styleId"), "")] = _Style(
                own_name.lower(),
                based_on.get(qn("w:val"), "") if based_on is not None else "",
                _level_by_name(own_name.lower()) if outline_level(style) is None else outline_level(style),
                number_of(style),
            )
        self._levels: dict[str, int | None] = {}
        self._num_ids: dict[str, str | None] = {}
        self._num_levels: dict[str, int | None] = {}

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


def outline_level(element: _Element) -> int | None:
    """The outline level of a paragraph or a style itself, from 0; 9 is body text."""
    level = element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    value = level.get(qn("w:val")) if level is not None else None
    return int(value) if value and value.isdecimal() and len(value) < 3 else None


def number_of(element: _Element) -> NumberOf:
    """The list of a paragraph or a style itself."""
    found = element.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
    num_id = found.find(qn("w:numId")) if found is not None else None
    level = found.find(qn("w:ilvl")) if found is not None else None
    value = level.get(qn("w:val"), "") if level is not None else ""
    return NumberOf(
        num_id.get(qn("w:val")) if num_id is not None else None,
        int(value) if value.isdecimal() and len(value) < 3 else None,
    )


def _level_by_name(name: str) -> int | None:
    number = name.removeprefix("heading ")
    return int(number) - 1 if name != number and number in tuple("123456789") else None
