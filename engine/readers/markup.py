"""Parses XML without fetching anything, writes it as blocks by a `Grammar` of tags, and MathML as text on a line.

Formulas have fractions by a slash, scripts by ^ and _, as in LaTeX.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from lxml import etree

from engine.errors import DocumentError
from engine.readers.blocks import Blocks
from engine.readers.encoding import decode
from engine.readers.fields import date_of_parts
from engine.readers.left_out import DELETED, ELEMENTS, FILES, READINGS, REFERENCES
from engine.text.cleaning import grouped, joined_lines, joined_words, one_line, raised
from engine.text.headings import numeral

Element: TypeAlias = Any  # lxml is not typed
Default = TypeVar("Default")
MAX_DEPTH = 50  # deeper parts are read without their structure


def mathml_text(formula: Element) -> str:
    """The text of a `math` element of MathML, on one line; its annotations are other notations of the same."""
    if not len(formula) and "\\" in (formula.text or ""):  # TeX, as Marker writes it
        return tex_text(formula.text)
    return one_line(_presented(formula, 0)) or _annotated(formula)


def _annotated(formula: Element) -> str:
    """The text of a formula that is there in another notation alone: of TeX, or as it is."""
    annotations = list(formula.iter("{*}annotation"))
    tex = next((one.text or "" for one in annotations if "tex" in (one.get("encoding") or "").lower()), "")
    tex = tex or formula.get("alttext") or ""
    return tex_text(tex) if tex else one_line(" ".join(one.text or "" for one in annotations))


def _presented(node: Element, depth: int) -> str:
    tag = node.tag.rpartition("}")[2]
    if tag in ("annotation", "annotation-xml") or depth > MAX_DEPTH:
        return "" if depth <= MAX_DEPTH else "".join(node.itertext(etree.Element))
    if tag in _TOKENS:
        text = one_line("".join(node.itertext(etree.Element)))
        return f" {text} " if tag == "mtext" or text in _RELATIONS or (len(text) > 1 and text.isalpha()) else text
    write = _PRESENTED.get(tag)
    if write is not None:
        return write([one_line(_presented(child, depth + 1)) for child in node.iterchildren(etree.Element)])
    own = [node.text or ""]
    for child in node.iterchildren(etree.Element):
        own += [_presented(child, depth + 1), child.tail or ""]
    return "".join(own) if "".join(own).strip() else ""


def _scripted(marks: str, after: str = "") -> Callable[[list[str]], str]:
    """A writer of a base with scripts, each behind its mark, and `after` before what follows them, as of a sum."""

    def write(parts: list[str]) -> str:
        base, scripts = (parts[0] if parts else ""), zip(marks, parts[1:], strict=False)
        return base + "".join(f"{mark}{grouped(script)}" for mark, script in scripts if script) + after

    return write


def tex_text(tex: str) -> str:
    """The text of a formula in the notation of TeX, as LaTeX files have it."""
    from engine.readers.latex import formula_text  # slow to import

    return formula_text(tex)


_IN_TEXT = re.compile(  # not over the start of another one: time stays linear
    r"\\\(((?:(?!\\\().){1,500}?)\\\)|(?<!\\)\\\[((?:(?!(?<!\\)\\\[).){1,2000}?)\\\]|\$\$([^$]{1,2000})\$\$", re.DOTALL
)
_IS_TEX = re.compile(r"\\[A-Za-z]|[_^=<>+]|^\s*[A-Za-z]\s*$")
_IN_DOLLARS = re.compile(r"(?<![\w\\$])\$(?=[^\s$])([^$\n]{1,300}?)(?<=[^\s\\])\$(?![\w$])")  # of notebooks
_IS_TEX_ALONE = re.compile(r"\\[A-Za-z]|[_^]\{|\w\^\w")
_NO_TEX = frozenset(["pre", "code", "kbd", "samp", "tt", "script", "style", "textarea", "math", "tex-math"])


def write_formulas(root: Element, text: str, blocks: Blocks) -> None:
    """Write formulas in the notation of TeX between \\( and \\), as MathJax finds them, in a tree with this text."""
    if not any(mark in text for mark in ("$", "\\(", "\\[")):
        return

    def written(is_tex: re.Pattern[str], match: re.Match[str]) -> str:
        tex = next(filter(None, match.groups()))
        shown = tex_text(tex.strip()) if is_tex.search(tex) else ""
        blocks.skip(match.group() if shown else "")
        return shown or match.group()

    found = root.xpath("//text()[contains(., '$') or contains(., '\\(') or contains(., '\\[')]")
    for element, place in dict.fromkeys((one.getparent(), "tail" if one.is_tail else "text") for one in found):
        owner = element if place == "text" else element.getparent()
        if not any(local_name(one) in _NO_TEX for one in (owner, *owner.iterancestors(etree.Element))):
            text = _IN_TEXT.sub(partial(written, _IS_TEX), getattr(element, place))
            setattr(element, place, _IN_DOLLARS.sub(partial(written, _IS_TEX_ALONE), text) if "$" in text else text)


_TOKENS = frozenset(["mi", "mn", "mo", "ms", "mtext", "ci", "cn"])
_RELATIONS = frozenset("=<>≤≥≠≈≡∼∝→←↔⇒∈∉⊂⊆+−±×·,")
_CELL_BORDER = re.compile(r", ?(?=[=<>≤≥≠≈≡]|$)")  # of an aligned equation, or of a blank cell
_PRESENTED: Mapping[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: "/".join(map(grouped, parts)),
    "msup": _scripted("^"), "msub": _scripted("_"), "msubsup": _scripted("_^"), "munder": _scripted("_", " "),
    "mover": _scripted("^"), "munderover": _scripted("_^", " "), "mmultiscripts": _scripted("_^_^"),
    "msqrt": lambda parts: f"√({''.join(parts)})",
    "mroot": lambda parts: f"{parts[1] if len(parts) > 1 else ''}√({''.join(parts[:1])})",
    "mtable": "; ".join, **dict.fromkeys(["mtr", "mlabeledtr"], lambda cells: _CELL_BORDER.sub(" ", ", ".join(cells))),
    "mfenced": lambda parts: f"({', '.join(parts)})", "mphantom": lambda parts: "", "apply": " ".join,
}  # fmt: skip


_MAX_TAGS = 2_000_000  # lxml needs some 200 bytes for an element, however short it is in the file
_NAMED_CHARACTER = re.compile(rb"&([A-Za-z][A-Za-z0-9.]{1,30});")
_FORM = re.compile("[1aAiI]")  # of the numbers of a list
LABEL = "longmatch-label"  # an attribute: the number of an item or a heading that its reader has counted
NOTE_MARK = re.compile(r"\^?[*\u2020\u2021]$|(?<=[^\W\d_]{3})(?:\^\d{1,2}|\[\d{1,2}\])$")  # behind a title
_SIGNS = {  # by font: runs of characters from a code on, with blanks where there is none
    font: {start + place: sign for start, signs in runs for place, sign in enumerate(signs) if sign != " "}
    for font, runs in {
        "symbol": (
            (0x21, "!∀#∃%&∋()∗+,−./0123456789:;<=>?"), (0x40, "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"),
            (0x61, "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"), (0xA0, "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…"), 
            (0xC0, "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉"),
            (0xD0, "∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑"), (0xF1, "⟩∫"),
        ),
        "wingdings": (
            (0x22, "✂✁"), (0x28, "☎✆✉"), (0x3E, "✇✍"), (0x41, "✌"), (0x45, "☜☞☝☟ ☺ ☹ ☠"), (0x51, "✈☼ ❄ ✞ ✠✡☪☯ॐ☸"),
            (0x5E, "♈♉♊♋♌♍♎♏♐♑♒♓"), (0x6C, "●❍■□ ❑❒⬧⧫◆❖⬥⌧ ⌘❀✿❝❞ ⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿"), 
            (0x9E, "·•▪○  ◉◎ ▪◻ ✦★✶✴✹✵"),
            (0xD8, "➢   ➲  ←→↑↓↖↗↙↘ ➔"), (0xEF, "⇦⇨⇧⇩⬄⇳"), (0xFB, "✗✓☒☑"),
        ),
    }.items()
}  # fmt: skip
_BREAK = "\v"  # stands for a line break inside a block until the block is written
MARKED = {  # reasons that many formats share
    **dict.fromkeys(["del", "strike", "strikethrough", "deleted-phrase", "deletedtext"], DELETED),
    **dict.fromkeys(["rt", "rtc"], READINGS),
    "rp": "",
}
_INCLUDE = "{http://www.w3.org/2001/XInclude}include"
_IS_DELETED = re.compile(r"line-through|strike|struck|\bdelet(?:ed|ion)\b", re.IGNORECASE)
_LOOKS = frozenset([  # attributes that say how an element looks, or how it changed
    "rend", "rendition", "style", "style-type", "content-type", "role", "status", "changed", "revisionflag",
])  # fmt: skip
_WORD_ENDS = re.compile(r"(?!.*[A-Z\d_])\w{3}$")
_WORD = re.compile(r"\w+")
_LINKS = frozenset(["a", "xref", "ref"])
_REFERENCES = frozenset(["ref", "bibl", "biblStruct", "biblFull", "us-citation", "citation", "reference"])


@dataclass(frozen=True, slots=True)
class HeadingMark:
    """The level and the number of a heading element."""

    level: int
    label: str = ""  # its number, where the format separates it from the text


@dataclass(frozen=True, slots=True)
class Grammar:
    """The meaning of the tags of a format; tags are local names, all others are inline."""

    blocks: frozenset[str]
    items: frozenset[str]  # of a list
    rows: frozenset[str]
    cells: frozenset[str]
    breaks: frozenset[str]
    verbatim: frozenset[str]  # white space is kept inside
    # Functions of an element and its local name, which is slow to ask for.
    heading: Callable[[Element, str], HeadingMark | None]
    left_out: Callable[[Element, str], str | None]  # the reason of `left_out`; "" without a count, None for text
    is_raised: Callable[[Element, str], bool] = field(default=lambda *_: False)  # a superscript, or the mark of a note
    tex: Callable[[Element, str], str] = field(default=lambda *_: "")  # the text of an element in the notation of TeX
    sections: frozenset[str] = frozenset()  # after one ends, the text belongs to the section around it
    words: frozenset[str] = frozenset()  # inline, but never glued to the words around them
    # Whether a word runs across a break of a line or a page, and the number of the first item of a list: "1." or "(a)".
    is_inside_word: Callable[[Element], bool] = field(default=lambda _: False)
    ordered: Callable[[Element], str] = field(default=lambda _: "")
    pin: Callable[[Element], str] = field(default=lambda _: "")  # the number of a block outside of its text, or ""


def named(root: Element, is_wanted: Callable[[str], object]) -> list[Element]:
    """The elements of a tree whose local names are wanted, in order; asks for each name once."""
    tags = {element.tag for element in root.iter(etree.Element)}
    wanted = [tag for tag in tags if is_wanted(tag.rpartition("}")[2])]
    return [*root.iter(*wanted)] if wanted else []


def local_name(element: Element) -> str:
    """The tag without its namespace."""
    tag: str = element.tag
    return tag.rpartition("}")[2]


def write(root: Element, grammar: Grammar, blocks: Blocks) -> None:
    """Append the text under `root` to `blocks`; trees can be deep: the walk is not recursive."""
    _Walk(root, grammar, blocks).through()


def signs(text: str, font: str) -> str:
    """Characters of Symbol or Wingdings as what these fonts show; others, and those without a character, are left."""
    shown = _SIGNS.get(font.strip("'\"").lower())
    if not shown:
        return text
    return "".join(shown.get(ord(one) & 0xFF if 0xF000 <= ord(one) < 0xF100 else ord(one), one) for one in text)


def words(element: Element | None) -> str:
    """All text under an element, on one line; "" for None."""
    return "" if element is None else one_line("".join(element.itertext(etree.Element)))


def date_of(date: Element) -> str:
    """An ISO date of parts, which are attributes in RFCs, and elements elsewhere; "" without a year."""
    return date_of_parts(*(date.get(part) or words(date.find(f"{{*}}{part}")) for part in ("year", "month", "day")))


def rendered(element: Element | None, grammar: Grammar) -> str:
    """The text under an element as `grammar` writes it, on one line; "" for None."""
    if element is None:
        return ""
    blocks = Blocks()
    write(element, grammar, blocks)
    return one_line(blocks.text)


def n_words(element: Element) -> int:
    """The number of words under an element."""
    return len("".join(element.itertext(etree.Element)).split())


def all_text(element: Element) -> str:
    """All text under an element, with a space between its parts: an account of the source for `Blocks.expect`."""
    return " ".join(element.itertext(etree.Element))


def leave_outside(
    root: Element, written: Iterable[Element | None], reason: str, blocks: Blocks, fields: Iterable[Element | None] = ()
) -> None:
    """Count the words under `root` that are neither in elements which are text nor in those which are metadata."""
    described = [element for element in fields if element is not None]
    known = {element for element in (*written, *described) if element is not None}
    for element in described:
        if known.isdisjoint(element.iterancestors()):
            blocks.describe(all_text(element))
    text = text_outside(root, known)
    blocks.left_out[reason] += len(text.split())
    blocks.skip(text)


def text_outside(root: Element, known: Container[Element]) -> str:
    """The text under an element that lies in none of the `known` ones."""
    parts: list[str] = []
    todo = [root]
    while todo:
        element = todo.pop()
        if element in known:
            continue
        parts.append(element.text or "")
        for child in element.iterchildren(etree.Element):
            parts.append(child.tail or "")
            todo.append(child)
    return " ".join(parts)


def lift(root: Element, tags: frozenset[str], paragraphs: frozenset[str]) -> None:
    """Move notes and floats that interrupt a paragraph behind it, so that its sentences stay whole."""
    for element in reversed([*root.iter(*(f"{{*}}{tag}" for tag in tags))]):
        above = [one for one in element.iterancestors() if local_name(one) in paragraphs]
        paragraph = above[-1] if above else None
        if paragraph is None or paragraph.getparent() is None or any(local_name(one) in tags for one in above):
            continue
        take_out(element)
        element.tail, paragraph.tail = paragraph.tail, None
        paragraph.addnext(element)


def join_numbers(numbers: Iterable[Element], headings: frozenset[str] = frozenset()) -> None:
    """Put each number before the first words that follow it; that of a heading stays, and is its label."""
    for number in numbers:
        place = number.getnext()
        if place is None or local_name(place) in headings or not words(number):
            continue
        while not (place.text or "").strip() and len(place):
            place = place[0]
        place.text = f"{words(number)} {(place.text or '').lstrip()}"
        take_out(number)
        number.getparent().set(LABEL, "")
        number.getparent().remove(number)


def join_blocks(first: Element, second: Element) -> None:
    """Move the text of a block to the end of another one, behind a blank."""
    text = f" {second.text or ''}"
    if len(first):
        first[-1].tail = (first[-1].tail or "") + text
    else:
        first.text = (first.text or "") + text
    first.extend([*second])
    take_out(second)
    second.getparent().remove(second)


def take_out(element: Element) -> None:
    """Leave the text behind an element in its place when the element moves."""
    tail, element.tail = element.tail, None
    before, parent = element.getprevious(), element.getparent()
    if before is None:
        parent.text = (parent.text or "") + (tail or "")
    else:
        before.tail = (before.tail or "") + (tail or "")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The meaning of a tag."""

    name: str  # without its namespace
    role: str  # the first of `_ROLES` in which a grammar has it; "" for an inline element
    is_section: bool


_ROLES = ("breaks", "cells", "items", "rows", "verbatim", "blocks", "words")


class _Walk:
    def __init__(self, root: Element, grammar: Grammar, blocks: Blocks) -> None:
        self._root, self._grammar = root, grammar
        self._whole = set[str]()  # words of the tree that no tag divides, from the first divided one on
        self._blocks = blocks
        self._buffer: list[str] = []
        self._prefix = self._pin = ""
        self._separator = "\n\n"
        self._heading: HeadingMark | None = None
        self._row: Element | None = None
        self._verbatim = 0
        self._is_inline = False  # whether the next text begins behind the start or the end of an inline element
        self._is_apart = False  # whether the next text does not continue the word before it
        self._numbers: dict[Element, int] = {}  # of the next items of ordered lists
        self._raised: list[tuple[Element, int]] = []  # superscripts, and where they begin in the buffer
        self._sections: list[tuple[str, int] | None] = []  # title and level of the open sections
        self._kinds: dict[str, _Kind] = {}  # by tags

    def through(self) -> None:
        root = self._root
        kind = self._kind_of(root.tag)
        if self._is_left_out(root, kind.name):
            return
        self._open(root, kind)
        path = [(root, iter(root), kind)]  # iterators, because a node can have millions of children
        while path:
            element, children, kind = path[-1]
            node = next(children, None)
            if node is None:
                path.pop()
                self._close(element, kind)
                node = element
            else:
                tag = node.tag
                if isinstance(tag, str):
                    kind = self._kinds.get(tag) or self._kind_of(tag)
                    if not self._is_left_out(node, kind.name) and not self._writes_formula(node, kind.name):
                        self._open(node, kind)
                        path.append((node, iter(node), kind))
                        continue
                elif tag is etree.Entity:
                    self._add(_named(node.text))
            if node is not root and (tail := node.tail):
                self._add(tail)
        self._flush()

    def _kind_of(self, tag: str) -> _Kind:
        name = tag.rpartition("}")[2]
        role = next((role for role in _ROLES if name in getattr(self._grammar, role)), "")
        self._kinds[tag] = kind = _Kind(name, role, name in self._grammar.sections)
        return kind

    def _is_left_out(self, node: Element, tag: str) -> bool:
        """Whether a node is left out, which is counted: elements of some kinds, and words of the others."""
        reason = self._grammar.left_out(node, tag)
        if reason is None and not _LOOKS.isdisjoint(names := node.keys()):
            reason = DELETED if any(_IS_DELETED.search(node.get(name)) for name in _LOOKS.intersection(names)) else None
        elif reason is None and tag == "include" and node.tag == _INCLUDE and not len(node):
            reason = FILES
        if reason is None:
            return False
        self._blocks.skip(all_text(node))
        if reason == REFERENCES:
            n_references = sum(local_name(one) in _REFERENCES for one in node.iter(etree.Element))
            self._blocks.left_out[reason] += max(1, n_references)
        elif reason:
            n_left_out = 1 if reason in ELEMENTS else n_words(node) or len((node.get("value") or "").split())
            self._blocks.left_out[reason] += n_left_out
        return True

    def _writes_formula(self, node: Element, tag: str) -> bool:
        """Write a formula as text."""
        text = mathml_text(node) if tag == "math" else self._grammar.tex(node, tag)
        if text or tag == "math":
            self._blocks.skip(all_text(node))
        if text:
            self._is_apart = is_formula = len(text) > 1 or tag != "img"  # a picture of one letter begins a word
            self._add(text)
            self._is_apart = is_formula
        return bool(text) or tag == "math"

    def _add(self, text: str) -> None:
        if self._is_apart and text:
            self._is_apart = False
            last = next((part[-1] for part in reversed(self._buffer) if part), " ")
            if (last.isalnum() or last in ".,;:!?)") and (text[0].isalnum() or text[0] in "(["):
                self._buffer.append(" ")
        elif self._is_inline and text[:1].isupper() and text[1:2].islower() and not self._verbatim:
            # Words that only their looks divide.
            before = "".join(self._buffer[-3:])
            is_divided = _WORD_ENDS.search(before[-3:]) and not self._is_compound(before, text)
            self._buffer.append(" " if is_divided else "")
        self._is_inline = False
        self._buffer.append(text)

    def _is_compound(self, before: str, text: str) -> bool:
        """Whether a word that a tag divides, as "Java<b>Script</b>", stands elsewhere in one piece."""
        self._whole = self._whole or {one for part in self._root.itertext(etree.Element) for one in _WORD.findall(part)}
        return _WORD.findall(before)[-1] + _WORD.findall(text)[0] in self._whole

    def _open(self, node: Element, kind: _Kind) -> None:
        if kind.is_section:
            self._sections.append(None)
        mark = self._grammar.heading(node, kind.name) if self._heading is None else None
        if mark is not None:
            self._flush()
            self._heading = mark
        else:
            self._open_part(node, kind)
        if text := node.text:
            self._add(text)

    def _open_part(self, node: Element, kind: _Kind) -> None:
        grammar, role = self._grammar, kind.role
        if role in ("blocks", "verbatim"):
            self._border()
            self._verbatim += role == "verbatim"
            self._pin = grammar.pin(node) or self._pin
        elif role == "breaks":
            self._break(node)
        elif role == "cells":
            self._start_cell()
        elif role == "items":
            self._start(prefix=self._mark_of(node))
        elif role == "rows":
            self._start()
            # A row that holds headings or tables lays out a page: its parts stay blocks.
            self._row = self._row if self._row is not None else node if _is_simple(node, grammar) else None
        elif grammar.is_raised(node, kind.name):
            self._raised.append((node, len(self._buffer)))
        elif role == "words":
            self._is_apart = True
        else:
            self._is_inline = True

    def _mark_of(self, item: Element) -> str:
        """The number of an item of an ordered list, or a bullet."""
        label = next((one.get(LABEL) for one in (item, *item[:1]) if one.get(LABEL) is not None), None)
        if label is not None:
            return f"{label} ".lstrip()
        parent = item.getparent()
        form = "" if parent is None else self._grammar.ordered(parent)
        if any(local_name(child) == "label" for child in item.iterchildren(etree.Element)):
            return ""  # its number is text
        if not form:
            return "- "
        is_reversed = parent.get("reversed") is not None
        first = number_or(parent.get("start"), len(parent) if is_reversed else 1)
        number = number_or(item.get("value") or item.get("n"), self._numbers.get(parent, first))
        self._numbers[parent] = number - 1 if is_reversed else number + 1
        return f"{_FORM.sub(lambda match: numeral(number, match.group()), form, count=1)} "

    def _close(self, node: Element, kind: _Kind) -> None:
        grammar, role = self._grammar, kind.role
        if self._heading is not None and grammar.heading(node, kind.name) is not None:
            self._end_heading()
        elif node is self._row:
            self._flush()
            self._row = None
        elif role in ("blocks", "items", "verbatim"):
            self._border()
            if grammar.pin(node):
                self._pin = ""
                self._blocks.pins.append((self._blocks.size, ""))
            self._verbatim -= role == "verbatim"
            if role == "items":
                self._prefix = ""
        elif self._raised and node is self._raised[-1][0]:
            self._end_raised(*self._raised.pop())
        elif role == "words":
            self._is_apart = (node.tail or "A")[0].isupper()  # others are of the same word: "Wien" and "s"
        else:
            self._is_inline = True
        if kind.is_section:
            self._end_section()

    def _break(self, node: Element) -> None:
        if not self._grammar.is_inside_word(node):
            ends = "".join(self._buffer[-2:]).rstrip(" \n")
            if self._row is not None and not ends.endswith("-"):
                self._buffer.append(" ")
            elif not ends.endswith(f"-{_BREAK}"):  # a line and a page end inside the same word
                self._buffer.append(_BREAK)
            return
        text = "".join(self._buffer).rstrip()
        self._buffer = [text[:-1] if text.endswith(("-", "\u00ad", "¬", "\u2010")) else text]

    def _end_raised(self, node: Element, start: int) -> None:
        text = "".join(self._buffer[start:])
        if text.strip():
            before = "".join(self._buffer[max(0, start - 24) : start])[-24:]
            inside = (node, node.getparent(), *node.iterchildren(etree.Element))
            is_link = any(local_name(one) in _LINKS and words(one) == text.strip() for one in inside if one is not None)
            is_mark = is_link and self._heading is not None and bool(before.strip())  # of a note, behind a title
            self._buffer[start:] = ["" if is_mark else raised(before, text, is_link=is_link)]
            if not before.strip():  # the number of a note before its text
                self._buffer[-1], self._is_apart = self._buffer[-1].rstrip(), True

    def _end_section(self) -> None:
        """The text that follows belongs to the section around the one that ends."""
        ended = self._sections.pop() if self._sections else None
        if ended is not None:
            self._flush()
            around = next((section for section in reversed(self._sections) if section is not None), ("", 1))
            self._blocks.resume(*around)

    def _start(self, prefix: str = "") -> None:
        """Start an item or a row: on a line of its own, close to the one before."""
        self._border()
        if self._row is None and self._heading is None:
            self._prefix, self._separator = prefix, "\n"

    def _start_cell(self) -> None:
        """Separate a cell from the cell before; blank cells at the start of a row are left out."""
        if self._row is None:
            self._buffer.append(" ")
        elif any(not part.isspace() for part in reversed(self._buffer) if part):
            self._buffer.append(" | ")
        else:
            self._buffer = []

    def _border(self) -> None:
        """A block starts or ends here; inside a row or a heading a space replaces the border."""
        if self._row is None and self._heading is None:
            self._flush()
        elif self._buffer and self._buffer[-1] != " ":
            self._buffer.append(" ")

    def _end_heading(self) -> None:
        if self._heading is not None:
            title = one_line(f"{self._heading.label} {joined_lines(''.join(self._buffer))}".replace(_BREAK, " "))
            title = NOTE_MARK.sub("", title)
            self._blocks.add_heading(title, self._heading.level)
            if self._sections and self._sections[-1] is None and title:
                self._sections[-1] = (title, self._heading.level)
        self._buffer, self._heading, self._separator, self._prefix = [], None, "\n\n", ""
        self._is_apart, self._raised = False, []

    def _flush(self) -> None:
        text = "".join(self._buffer) if self._buffer else ""
        self._buffer, self._is_apart, self._raised = [], False, []
        if not text or text.isspace():
            return
        if self._verbatim:
            text = joined_words(text.replace(_BREAK, "\n").replace("\f", "\n"))
        else:
            text = joined_lines(joined_words(text) if "-\n" in text else text)
            text = "\n".join(map(one_line, text.split(_BREAK))).strip()
            text = joined_words(text) if "\n" in text else text
        if text.strip():
            prefix = (
                "" if text.startswith(self._prefix) else self._prefix
            )  # some write the number of an item themselves
            start = self._blocks.add(prefix + text.rstrip(), self._separator)
            if self._pin:
                self._blocks.pins.append((start, self._pin))
            self._prefix, self._separator, self._pin = "", "\n\n", ""


def form_of(kind: str) -> str:
    """The form of the numbers of a list by any of its names: "a." for "lower-alpha" and "alpha-lower"; "" for none."""
    form = "i" if "roman" in kind else "a" if "alpha" in kind or "latin" in kind else ""
    return form and f"{form.upper() if 'upper' in kind else form}."


def number_or(text: str | None, default: Default) -> int | Default:
    """The whole number that a text is, of six digits at most."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 7 else default


def _is_simple(row: Element, grammar: Grammar) -> bool:
    nested = [(node, local_name(node)) for node in row.iterdescendants(etree.Element)]
    listings = (node for node, tag in nested if tag in grammar.verbatim)
    is_listing = any("\n" in "".join(node.itertext(etree.Element)).strip() for node in listings)
    is_layout = any(tag in grammar.rows or grammar.heading(node, tag) is not None for node, tag in nested)
    return not (is_listing or is_layout)


def attributes(element: Element) -> dict[str, str]:
    """The attributes of an element by their local names."""
    return {name.rpartition("}")[2]: value for name, value in element.items()}


def parse_safely(data: bytes) -> Element:
    """The root element of an XML document.

    Raises:
        DocumentError: not well-formed, or over `_MAX_TAGS`.
    """
    check_tags(data.count(b"<"))
    fault = ""
    for _ in range(_MOST_FAULTS):
        try:
            root = etree.fromstring(data, _parser())
            is_whole = next(root.iter(etree.Entity), None) is None  # with a DTD, unknown names are nodes and no fault
            return root if is_whole else etree.fromstring(_NAMED_CHARACTER.sub(_numbered_character, data), _parser())
        except etree.XMLSyntaxError as error:
            fault = one_line(error.msg)
        mend = next((mend for pattern, mend in _MENDS if re.search(pattern, fault)), None)
        if mend is None or (mended := mend(data, fault)) == data:
            break
        data = mended
    raise DocumentError(f"it is not well-formed XML: {fault}")


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )


_GREEK = dict(
    zip("a b g d e z ee th i k l m n x o p r sf s t u ph kh ps oh".split(), "αβγδεζηθικλμνξοπρςστυφχψω", strict=True)
)


def _named(reference: str) -> str:
    """The characters of a reference: names as in HTML, and letters of Greek as "&agr;" (ISO 8879)."""
    letter = _GREEK.get(reference[1:-3].lower(), "") if reference.endswith("gr;") else ""
    return (letter.upper() if reference[1].isupper() else letter) or html.unescape(reference)


def _numbered_character(match: re.Match[bytes]) -> bytes:
    character = _named(match.group().decode())
    if match[1] in (b"lt", b"gt", b"amp", b"quot", b"apos"):
        return match.group()
    return b"&amp;" + match.group()[1:] if character.endswith(";") else character.encode("ascii", "xmlcharrefreplace")


def _without_prefix(data: bytes, fault: str) -> bytes:
    """The document without a prefix of names that it does not declare."""
    prefix = re.escape(fault.split("prefix ")[1].split()[0].encode())
    return re.sub(rb"(</?|<[^<>]{0,1000}?\s)" + prefix + rb":(?=[\w.-]+[\s=/>])", rb"\1", data)


def _without_repeated(data: bytes, fault: str) -> bytes:
    """The document without an attribute where its element has it already."""
    attribute = rb"\s" + re.escape(fault.split()[1].encode()) + rb"\s*=\s*(?:\"[^\"<]{0,1000}\"|'[^'<]{0,1000}')"
    return re.sub(rb"(<[^<>]{0,1000}?" + attribute + rb"[^<>]{0,1000}?)" + attribute, rb"\1", data)


_REFERENCES_IN_TURN = re.compile(rb"(?:&#(?:\d{1,7}|[xX][0-9A-Fa-f]{1,6});)+")


def _sound_references(match: re.Match[bytes]) -> bytes:
    """Numbers of characters, of which XML allows each: halves of a sign beyond the first plane are joined."""
    codes = (int(f"0{one}", 16 if one[0] in "xX" else 10) for one in match.group().decode()[2:-1].split(";&#"))
    signs = "".join(chr(min(code, 0x10FFFF)) for code in codes).encode("utf-16", "surrogatepass")
    text = _NOT_XML.sub(" ", signs.decode("utf-16", "replace"))
    return "".join(f"&#{ord(sign)};" for sign in text).encode()


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_MOST_FAULTS = 8
# Faults that have nothing to do with structure, by what the parser says of them.
_MENDS: tuple[tuple[str, Callable[[bytes, str], bytes]], ...] = (
    ("Entity '.*' not defined", lambda data, _: _NAMED_CHARACTER.sub(_numbered_character, data)),
    ("EntityRef:", lambda data, _: re.sub(rb"&(?!#?\w{1,31};)", b"&amp;", data)),
    ("NCName|ID .* already defined", lambda data, _: re.sub(rb"\sxml:id\s*=", b" id-of-element=", data)),
    ("xmlParseCharRef", lambda data, _: _REFERENCES_IN_TURN.sub(_sound_references, data)),
    ("invalid Char|Char value", lambda data, _: re.sub(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]", b" ", data)),
    ("Invalid bytes|not proper UTF-8", lambda data, _: decode(data).encode()),
    ("Namespace prefix \\S+ ", _without_prefix),
    ("Attribute \\S+ redefined", _without_repeated),
)


def check_tags(n_tags: int) -> None:
    """Refuse more start and end tags than fit into reasonable memory."""
    if n_tags > _MAX_TAGS:
        raise DocumentError(f"it has {n_tags:,} tags, the limit is {_MAX_TAGS:,}; convert it to plain text")
