"""Styles, numbers and equations of Word: names, outline levels and lists, counted as Word counts them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from lxml import etree

from engine.readers.markup import MAX_DEPTH, number_or
from engine.text.cleaning import grouped, one_line
from engine.text.headings import numeral

_Element: TypeAlias = Any
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFF = frozenset(["0", "false", "off"])


@cache
def qn(path: str) -> str:
    """The tag of an element or an attribute of WordprocessingML, or a path of tags."""
    return "/".join(f"{_W}{name}" for name in path.split("/"))


def value_of(element: _Element, path: str) -> str | None:
    """The value of the element on a path such as "pPr/jc"; "" where it has none, None where there is no element."""
    child = element.find(qn(path))
    return None if child is None else str(child.get(qn("val"), ""))


def is_on(element: _Element, path: str) -> bool | None:
    """Whether a switch such as "rPr/b" is on; None where it is not there."""
    value = value_of(element, path)
    return None if value is None else value not in _OFF


class Styles:
    """The styles of a document by their ids; time is linear in their number."""

    def __init__(self, root: _Element | None) -> None:
        self._styles: dict[str, dict[str, Any]] = {}  # a value is None where it is not given
        for style in root.iterchildren(qn("style")) if root is not None else ():
            name, level = (value_of(style, "name") or "").lower(), outline_level(style)
            num_id, num_level = number_of(style)
            is_other = "sub" in name or _level_by_name(name) is not None
            self._styles[style.get(qn("styleId"), "")] = {
                "name": name,
                "based_on": value_of(style, "basedOn") or "",
                "level": _level_by_name(name) if level is None else level,
                "num_id": num_id,
                "num_level": num_level,
                "meaning": _meaning(style),
                "align": value_of(style, "pPr/jc"),
                "is_bold": is_on(style, "rPr/b"),
                "is_title": name == "title" or (False if is_other else None),
            }
        self._known: dict[tuple[str, str], Any] = {}
        self._have_meaning = any(style["meaning"] for style in self._styles.values())

    def name(self, style_id: str) -> str:
        """The name of a style, in lower case; its id where there is no such style."""
        return str(self._styles.get(style_id, {"name": style_id.lower()})["name"])

    def level(self, style_id: str) -> int | None:
        """Outline level of a style or of the nearest style that it is based on, from 0."""
        if style_id not in self._styles:
            return _level_by_name(style_id.lower())
        level: int | None = self._inherited(style_id, "level")
        return level

    def look(self, style_id: str, name: str) -> str | bool | None:
        """The "align", "is_bold" or "is_title" of a style or of the nearest style that it is based on."""
        look: str | bool | None = self._inherited(style_id, name)
        return look

    def number(self, style_id: str) -> tuple[str | None, int | None]:
        """As `number_of`, of a style or else of the nearest style that it is based on."""
        return self._inherited(style_id, "num_id"), self._inherited(style_id, "num_level")

    def meaning(self, run: _Element) -> str:
        """What the type of a run means: "raised", "hidden" or "deleted" (struck); "" for nothing."""
        meaning = _meaning(run)
        if meaning is None and self._have_meaning:
            paragraph = next(run.iterancestors(qn("p")), None)
            styles = [value_of(run, "rPr/rStyle")]
            styles += [] if paragraph is None else [value_of(paragraph, "pPr/pStyle")]
            meanings = (self._inherited(style, "meaning") for style in styles if style)
            meaning = next((one for one in meanings if one is not None), None)
        return meaning or ""

    def _inherited(self, style_id: str, name: str) -> Any:  # noqa: ANN401
        """A value of a style, or of the styles it is based on; known values break cycles and keep the time linear."""
        chain = []
        value = None
        while value is None and style_id in self._styles and (name, style_id) not in self._known:
            self._known[name, style_id] = None
            chain.append((name, style_id))
            value = self._styles[style_id][name]
            style_id = self._styles[style_id]["based_on"]
        value = self._known.get((name, style_id)) if value is None else value
        self._known.update(dict.fromkeys(chain, value))
        return value


def _meaning(element: _Element) -> str | None:
    """What the type of a run or a style itself means; None where nothing is given."""
    properties = element.find(qn("rPr"))
    given = {} if properties is None else {part.tag: part.get(qn("val"), "") for part in properties}
    switches = (given.get(qn(name)) for name in ("vanish", "strike", "dstrike"))
    hidden, *struck = (None if value is None else value not in _OFF for value in switches)
    align, position = given.get(qn("vertAlign")), given.get(qn("position"), "")
    if hidden or any(struck):
        return "hidden" if hidden else "deleted"
    if align == "superscript" or (position.isdecimal() and position != "0"):
        return "raised"
    return None if align is None and {hidden, *struck} == {None} else ""


def outline_level(element: _Element) -> int | None:
    """The outline level of a paragraph or a style itself, from 0; 9 is body text."""
    return number_or(value_of(element, "pPr/outlineLvl"), None)


def number_of(element: _Element) -> tuple[str | None, int | None]:
    """The list that numbers a paragraph or a style itself, and the level; each None where it is not given."""
    return value_of(element, "pPr/numPr/numId"), number_or(value_of(element, "pPr/numPr/ilvl"), None)


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
    is_legal: bool  # its numbers are all in Arabic digits
    restart: int  # it starts again after a number of a level above this one, from 0


# The levels of a list, and its counters: several lists can share these.
_List: TypeAlias = tuple[dict[int, _Level], list[int | None]]


class Numbering:
    """The labels of numbered paragraphs; call `label` in the order of the document."""

    def __init__(self, root: _Element | None) -> None:
        self._lists: dict[str, _List] = {}
        self._starts: dict[str, dict[int, int]] = {}  # first numbers by level, of lists that override them
        if root is None:
            return
        definitions = {one.get(qn("abstractNumId"), ""): one for one in root.iterchildren(qn("abstractNum"))}
        lists: dict[str, _List] = {link: (_levels(one), [None] * N_LEVELS) for link, one in definitions.items()}
        linked = {name: lists[link] for link, one in definitions.items() if (name := _value(one, "styleLink"))}
        lists |= {link: linked.get(_value(one, "numStyleLink"), lists[link]) for link, one in definitions.items()}
        for number in root.iterchildren(qn("num")):
            num_id, overrides = number.get(qn("numId"), ""), [*number.iterchildren(qn("lvlOverride"))]
            levels, counters = lists.get(_value(number, "abstractNumId"), ({}, [None] * N_LEVELS))
            own = [level for override in overrides for level in _levels(override).items()]
            self._lists[num_id] = (levels | dict(own), counters)
            starts = ((number_or(one.get(qn("ilvl")), 0), _value(one, "startOverride")) for one in overrides)
            self._starts[num_id] = {at: number_or(start, 1) for at, start in starts if start and at < N_LEVELS}

    def level_of_style(self, num_id: str, style: str) -> int:
        """The level of a list that a style stands for; 0 where there is none."""
        levels, _ = self._lists.get(num_id, ({}, []))
        return next((level for level, one in levels.items() if one.style == style), 0)

    def label(self, num_id: str, level: int) -> str:
        """Count one paragraph; returns its label, `BULLET`, or "" where it has none."""
        levels, counters = self._lists.get(num_id, ({}, []))
        own = levels.get(level)
        if own is None:
            return BULLET
        for place, start in self._starts.pop(num_id, {}).items():
            counters[place] = start - 1
            counters[place + 1 :] = [None] * (N_LEVELS - place - 1)
        for above in range(level):
            if counters[above] is None:
                counters[above] = levels[above].start if above in levels else 1
        before = counters[level]
        counters[level] = own.start if before is None else before + 1
        for below in range(level + 1, N_LEVELS):
            if below not in levels or level < levels[below].restart:
                counters[below] = None

        def shown(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            count, form = counters[place], levels[place].form if place in levels else ""
            return "" if count is None or not form else str(count) if own.is_legal else _formatted(count, form)

        return BULLET if own.form == "bullet" else "" if own.form == "none" else _PLACE.sub(shown, own.text)


_FIRST_NUMBERS = {
    "Roman": "i", "Letter": "a", "ordinal": "1st", "decimalEnclosedCircle": "①", "decimalEnclosedCircleChinese": "①",
    **dict.fromkeys(["chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting",
                     "taiwaneseCountingThousand"], "\u4e00"),
    "russianLower": "а", "russianUpper": "А", "aiueo": "ア", "aiueoFullWidth": "ア", "iroha": "イ",
    "irohaFullWidth": "イ", "ideographTraditional": "甲", "ganada": "가", "hebrew2": "א", "arabicAlpha": "أ",
}  # fmt: skip


def _formatted(number: int, form: str) -> str:
    if form == "decimalZero":
        return f"{number:02}"
    sign = _FIRST_NUMBERS.get(form.removeprefix("lower").removeprefix("upper"), "1")
    return numeral(number, sign.upper() if form.startswith("upper") else sign)


def _levels(abstract: _Element) -> dict[int, _Level]:
    levels = {}
    for element in abstract.iterchildren(qn("lvl")):
        level = number_or(element.get(qn("ilvl")), 0)
        form = _value(element, "numFmt") or "decimal"
        start = number_or(_value(element, "start"), 1)
        is_legal = is_on(element, "isLgl") or False
        restart = number_or(_value(element, "lvlRestart"), N_LEVELS)
        levels[level] = _Level(_value(element, "lvlText"), form, start, _value(element, "pStyle"), is_legal, restart)
    return {level: one for level, one in levels.items() if level < N_LEVELS}


def _value(element: _Element, name: str) -> str:
    return value_of(element, name) or ""


_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATIONS = frozenset([f"{_M}oMath", f"{_M}oMathPara"])
_NOT_IN_EQUATION = frozenset([f"{_W}del", f"{_W}moveFrom", f"{_W}rPr"])


def equation_text(equation: _Element) -> str:
    """The text of an `m:oMath` or `m:oMathPara`, on one line."""
    return one_line(_math_text(equation, 0))


def _math_text(node: _Element, depth: int) -> str:
    """The text of a part; a form shows the first of its parts of each name, and all of "e"."""
    name = node.tag.rpartition("}")[2]
    if node.tag in _NOT_IN_EQUATION or name.endswith("Pr"):
        return ""
    if node.tag == f"{_M}t":
        return node.text or ""
    if depth > MAX_DEPTH:
        return "".join(one.text or "" for one in node.iter(f"{_M}t"))
    texts = [(etree.QName(one).localname, _math_text(one, depth + 1)) for one in node.iterchildren(etree.Element)]
    if name in _BORDERS:
        return _BORDERS[name].join(text.strip() for part, text in texts if not part.endswith("Pr"))
    if name not in _FORMS:
        return "".join(text for _, text in texts)
    shown: defaultdict[str, str] = defaultdict(
        str, begChr="(", endChr=")", sepChr="|", chr="∫" if name == "nary" else "\u0302"
    )
    for given in node.iterfind(f"{_M}{name}Pr/{_M}*[@{_M}val]"):
        shown[etree.QName(given).localname] = given.get(f"{_M}val")
    shown |= {part: text.strip() for part, text in reversed(texts)}
    shown["e"] = shown["sepChr"].join(text.strip() for part, text in texts if part == "e")
    shown["argument"] = shown["e"] if shown["e"].startswith("(") else f" {shown['e']}"
    for part, mark in _GROUPED.items():
        shown[part] = shown[part] and f"{mark}{grouped(shown[part])}"
    return _FORMS[name].format_map(shown)


_GROUPED = {"sub": "_", "sup": "^", "lim": "", "num": "", "den": ""}
_BORDERS = {"m": "; ", "mr": ", ", "eqArr": "; ", "oMathPara": " "}
_FORMS = {
    **dict.fromkeys(["sSup", "sSub", "sSubSup"], "{e}{sub}{sup}"), "sPre": "{sub}{sup}{e}",
    "nary": "{chr}{sub}{sup} {e}", "d": "{begChr}{e}{endChr}", "func": "{fName}{argument}", "acc": "{e}{chr}",
    "limLow": "{e}_{lim}", "limUpp": "{e}^{lim}", "f": "{num}/{den}", "rad": "{deg}√({e})",
}  # fmt: skip
