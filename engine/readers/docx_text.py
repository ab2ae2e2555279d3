"""Text of Word's paragraphs and tables as it reads when all tracked changes are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from docx.oxml.ns import qn

from engine.readers.docx_math import EQUATIONS, equation_text
from engine.text.cleaning import one_line

_Element: TypeAlias = Any
_TEXT, _PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:t"), qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_CHARACTERS = {
    qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "\u2011",
}  # fmt: skip
_SKIPPED = frozenset(
    [
        qn("w:del"),
        qn("w:moveFrom"),
        qn("w:pPr"),
        qn("w:rPr"),
        qn("w:tcPr"),
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    ]
)
_CONTAINERS = frozenset(qn(f"w:{name}") for name in ("sdt", "sdtContent", "ins", "moveTo", "customXml"))
_DELETED_ROW = (f"{qn('w:trPr')}/{qn('w:del')}", f"{qn('w:tcPr')}/{qn('w:cellDel')}")


def blocks_of(body: _Element) -> Iterator[_Element]:
    """Paragraphs and tables of a body in order; content controls are opened, tables are not."""
    return _opened(body, frozenset([_PARAGRAPH, _TABLE]))


def rows_of(table: _Element) -> Iterator[str]:
    """A line for each row of a table; a table in a cell is text of that cell."""
    for row in _opened(table, frozenset([_ROW])):
        if row.find(_DELETED_ROW[0]) is None:
            cells = (cell for cell in _opened(row, frozenset([_CELL])) if cell.find(_DELETED_ROW[1]) is None)
            yield " | ".join(one_line(text_of(cell)) for cell in cells)


def text_of(root: _Element) -> str:
    """The text of a paragraph, a cell or a note; paragraphs inside it are lines."""
    parts: list[str] = []
    todo = [root]
    while todo:
        node = todo.pop()
        tag = node.tag
        if tag == _TEXT:
            parts.append(node.text or "")
        elif tag in _CHARACTERS:
            parts.append(_CHARACTERS[tag])
        elif tag in EQUATIONS:
            parts.append(equation_text(node))
        elif tag not in _SKIPPED and not _is_deleted_row(node):
            if tag == _PARAGRAPH and node is not root and parts:
                parts.append("\n")
            todo.extend(reversed(node))
    return "".join(parts)


def note_references(block: _Element) -> Iterator[tuple[str, str]]:
    """(kind, id) of the notes to which a paragraph or a table refers, in order; kind is footnote or endnote."""
    todo = [block]
    while todo:
        node = todo.pop()
        if node.tag == qn("w:footnoteReference"):
            yield "footnote", node.get(qn("w:id"), "")
        elif node.tag == qn("w:endnoteReference"):
            yield "endnote", node.get(qn("w:id"), "")
        elif node.tag not in _SKIPPED and not _is_deleted_row(node):
            todo.extend(reversed(node))


def _is_deleted_row(node: _Element) -> bool:
    return node.tag == _ROW and node.find(_DELETED_ROW[0]) is not None


def _opened(parent: _Element, wanted: frozenset[str]) -> Iterator[_Element]:
    todo = list(reversed(parent))
    while todo:
        node = todo.pop()
        if node.tag in wanted:
            yield node
        elif node.tag in _CONTAINERS:
            todo.extend(reversed(node))
