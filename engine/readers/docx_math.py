"""Equations of Word as text on a line: fractions by a slash, scripts by ^ and _, as in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from engine.text.cleaning import one_line

_Element: TypeAlias = Any
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
EQUATIONS = frozenset([f"{_M}oMath", f"{_M}oMathPara"])
_SKIPPED = frozenset([f"{_W}del", f"{_W}moveFrom", f"{_W}rPr"])
_MAX_DEPTH = 50  # deeper parts are read without their structure


def equation_text(equation: _Element) -> str:
    """The text of an `m:oMath` or `m:oMathPara`, on one line."""
    return one_line(_text(equation, 0))


def _text(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or node.tag in _SKIPPED or node.tag.endswith("Pr"):
        return ""
    if node.tag == f"{_M}t":
        return node.text or ""
    if depth > _MAX_DEPTH:
        return "".join(one.text or "" for one in node.iter(f"{_M}t"))
    write = _WRITERS.get(node.tag.rpartition("}")[2])
    return write(node, depth + 1) if write else "".join(_text(child, depth + 1) for child in node)


def _child(node: _Element, name: str, depth: int) -> str:
    child = node.find(f"{_M}{name}")
    return _text(child, depth).strip() if child is not None else ""


def _children(node: _Element, name: str, depth: int) -> list[str]:
    return [_text(child, depth).strip() for child in node.iterchildren(f"{_M}{name}")]


def _property(node: _Element, properties: str, name: str, default: str) -> str:
    """The value of a property; `default` where it is not given."""
    found = node.find(f"{_M}{properties}/{_M}{name}")
    value = found.get(f"{_M}val") if found is not None else None
    return default if value is None else str(value)


def _grouped(text: str) -> str:
    """In parentheses, unless it is one number or name."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _fraction(node: _Element, depth: int) -> str:
    return f"{_grouped(_child(node, 'num', depth))}/{_grouped(_child(node, 'den', depth))}"


def _scripts(node: _Element, depth: int) -> str:
    below, above = _child(node, "sub", depth), _child(node, "sup", depth)
    scripts = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    base = _child(node, "e", depth)
    return scripts + base if node.tag == f"{_M}sPre" else base + scripts


def _root(node: _Element, depth: int) -> str:
    degree = _child(node, "deg", depth)
    return f"{degree}√({_child(node, 'e', depth)})"


def _sum(node: _Element, depth: int) -> str:
    below, above = _child(node, "sub", depth), _child(node, "sup", depth)
    limits = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    return f"{_property(node, 'naryPr', 'chr', '∫')}{limits} {_child(node, 'e', depth)}"


def _delimited(node: _Element, depth: int) -> str:
    separator = _property(node, "dPr", "sepChr", "|")
    inner = separator.join(_children(node, "e", depth))
    return f"{_property(node, 'dPr', 'begChr', '(')}{inner}{_property(node, 'dPr', 'endChr', ')')}"


def _function(node: _Element, depth: int) -> str:
    argument = _child(node, "e", depth)
    space = "" if argument.startswith("(") else " "
    return f"{_child(node, 'fName', depth)}{space}{argument}"


def _limit(node: _Element, depth: int) -> str:
    mark = "_" if node.tag == f"{_M}limLow" else "^"
    return f"{_child(node, 'e', depth)}{mark}{_grouped(_child(node, 'lim', depth))}"


def _matrix(node: _Element, depth: int) -> str:
    return "; ".join(", ".join(_children(row, "e", depth)) for row in node.iterchildren(f"{_M}mr"))


def _lines(node: _Element, depth: int) -> str:
    return "; ".join(_children(node, "e", depth))


def _accented(node: _Element, depth: int) -> str:
    return _child(node, "e", depth) + _property(node, "accPr", "chr", "\u0302")


def _paragraph(node: _Element, depth: int) -> str:
    return " ".join(_text(child, depth) for child in node)


_WRITERS: Mapping[str, Callable[[_Element, int], str]] = {
    "f": _fraction, "sSup": _scripts, "sSub": _scripts, "sSubSup": _scripts, "sPre": _scripts, "rad": _root,
    "nary": _sum, "d": _delimited, "func": _function, "limLow": _limit, "limUpp": _limit, "m": _matrix,
    "eqArr": _lines, "acc": _accented, "oMathPara": _paragraph,
}  # fmt: skip
