"""Formulas of Word and MathML as text on a line: fractions by a slash, scripts by ^ and _, as in LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lxml import etree

from engine.text.cleaning import one_line

_Element: TypeAlias = Any
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
EQUATIONS = frozenset([f"{_M}oMath", f"{_M}oMathPara"])
_NOT_IN_EQUATION = frozenset([f"{_W}del", f"{_W}moveFrom", f"{_W}rPr"])
_MAX_DEPTH = 50  # deeper parts are read without their structure


def equation_text(equation: _Element) -> str:
    """The text of an `m:oMath` or `m:oMathPara`, on one line."""
    return one_line(_math_text(equation, 0))


def _math_text(node: _Element, depth: int) -> str:
    if not isinstance(node.tag, str) or node.tag in _NOT_IN_EQUATION or node.tag.endswith("Pr"):
        return ""
    if node.tag == f"{_M}t":
        return node.text or ""
    if depth > _MAX_DEPTH:
        return "".join(one.text or "" for one in node.iter(f"{_M}t"))
    write = _WRITERS.get(node.tag.rpartition("}")[2])
    return write(node, depth + 1) if write else "".join(_math_text(child, depth + 1) for child in node)


def _child(node: _Element, name: str, depth: int) -> str:
    child = node.find(f"{_M}{name}")
    return _math_text(child, depth).strip() if child is not None else ""


def _children(node: _Element, name: str, depth: int) -> list[str]:
    return [_math_text(child, depth).strip() for child in node.iterchildren(f"{_M}{name}")]


def _property(node: _Element, properties: str, name: str, default: str) -> str:
    """The value of a property; `default` where it is not given."""
    found = node.find(f"{_M}{properties}/{_M}{name}")
    value = found.get(f"{_M}val") if found is not None else None
    return default if value is None else str(value)


def _grouped(text: str) -> str:
    """In parentheses, unless it is one number or name."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _scripts(node: _Element, depth: int) -> str:
    below, above = _child(node, "sub", depth), _child(node, "sup", depth)
    scripts = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    base = _child(node, "e", depth)
    return scripts + base if node.tag == f"{_M}sPre" else base + scripts


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


_WRITERS: Mapping[str, Callable[[_Element, int], str]] = {
    "sSup": _scripts, "sSub": _scripts, "sSubSup": _scripts, "sPre": _scripts, "nary": _sum, "d": _delimited,
    "func": _function, "limLow": _limit, "limUpp": _limit,
    "f": lambda node, depth: f"{_grouped(_child(node, 'num', depth))}/{_grouped(_child(node, 'den', depth))}",
    "rad": lambda node, depth: f"{_child(node, 'deg', depth)}√({_child(node, 'e', depth)})",
    "m": lambda node, depth: "; ".join(", ".join(_children(row, "e", depth)) for row in node.iterchildren(f"{_M}mr")),
    "eqArr": lambda node, depth: "; ".join(_children(node, "e", depth)),
    "acc": lambda node, depth: _child(node, "e", depth) + _property(node, "accPr", "chr", "\u0302"),
    "oMathPara": lambda node, depth: " ".join(_math_text(child, depth) for child in node),
}  # fmt: skip


def mathml_text(formula: _Element) -> str:
    """The text of a `math` element of MathML, on one line; its annotations are other notations of the same."""
    return one_line(_presented(formula, 0)) or _annotated(formula)


def _annotated(formula: _Element) -> str:
    """The text of a formula that is there in another notation alone: of TeX, or as it is."""
    annotations = list(formula.iter("{*}annotation"))
    tex = next((one.text or "" for one in annotations if "tex" in (one.get("encoding") or "").lower()), "")
    tex = tex or formula.get("alttext") or ""
    return tex_text(tex) if tex else one_line(" ".join(one.text or "" for one in annotations))


def _presented(node: _Element, depth: int) -> str:
    tag = node.tag.rpartition("}")[2]
    if tag in ("annotation", "annotation-xml") or depth > _MAX_DEPTH:
        return "" if depth <= _MAX_DEPTH else "".join(node.itertext(etree.Element))
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


def _scripted(marks: str) -> Callable[[list[str]], str]:
    """A writer of a base with scripts, each behind its mark."""

    def write(parts: list[str]) -> str:
        base, scripts = (parts[0] if parts else ""), zip(marks, parts[1:], strict=False)
        return base + "".join(f"{mark}{_grouped(script)}" for mark, script in scripts if script)

    return write


def tex_text(tex: str) -> str:
    """The text of a formula in the notation of TeX, as LaTeX files have it."""
    from engine.readers.latex import formula_text  # slow to import

    return formula_text(tex)


_TOKENS = frozenset(["mi", "mn", "mo", "ms", "mtext", "ci", "cn"])
_RELATIONS = frozenset("=<>≤≥≠≈≡∼∝→←↔⇒∈∉⊂⊆+−±×·,")
_PRESENTED: Mapping[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: "/".join(map(_grouped, parts)),
    "msup": _scripted("^"), "msub": _scripted("_"), "msubsup": _scripted("_^"), "munder": _scripted("_"),
    "mover": _scripted("^"), "munderover": _scripted("_^"), "mmultiscripts": _scripted("_^_^"),
    "msqrt": lambda parts: f"√({''.join(parts)})",
    "mroot": lambda parts: f"{parts[1] if len(parts) > 1 else ''}√({''.join(parts[:1])})",
    "mtable": "; ".join, "mtr": ", ".join, "mlabeledtr": ", ".join,
    "mfenced": lambda parts: f"({', '.join(parts)})", "mphantom": lambda parts: "", "apply": " ".join,
}  # fmt: skip
