"""DOCX (Word): paragraphs, lists, tables, notes and equations in the order of the document; not comments."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from lxml import etree

from engine.errors import DocumentError
from engine.readers.docx_styles import BULLET, N_LEVELS, Numbering, NumberOf, Styles, number_of, outline_level
from engine.readers.encoding import MAX_CONTAINER_BYTES
from engine.readers.left_out import COMMENTS, FIGURES, OBJECTS, elements_left_out
from engine.text.blocks import Blocks
from engine.text.cleaning import MAX_DOCUMENT_BYTES, one_line, too_large
from engine.text.document import Document, MetadataValue, assemble

_Element: TypeAlias = Any
MAX_XML_BYTES = 3 * MAX_DOCUMENT_BYTES  # in memory the elements take some ten times as much
# `blip` and `imagedata` are pictures of current and of older versions of Word; shapes with text are read.
_NOT_READ = {
    "blip": FIGURES,
    "imagedata": FIGURES,
    "chart": FIGURES,
    "OLEObject": OBJECTS,
    "commentReference": COMMENTS,
}
_TEXT_LEVEL = 9  # outline level of body text
_NOTES = (("footnote", RELATIONSHIP_TYPE.FOOTNOTES), ("endnote", RELATIONSHIP_TYPE.ENDNOTES))


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a Word document as if all its tracked changes were accepted.

    A heading is a paragraph with an outline level, its own or that of its style. The
    title is that of the properties, else the first paragraph of style Title. Footnotes
    and endnotes follow the paragraph or the table that refers to them.

    Raises:
        DocumentError: not a Word document, too large, or no text.
    """
    _check_archive(data)
    try:
        word = docx.Document(io.BytesIO(data))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, etree.XMLSyntaxError) as error:
        raise DocumentError(f"it is a damaged DOCX file ({error}); save it again") from error
    except (KeyError, ValueError) as error:
        raise DocumentError("it is a zip file but not a Word document; save it as .docx") from error
    writer = _Writer(word)
    for block in blocks_of(word.element.body):
        writer.write(block)
    blocks = writer.blocks
    title = word.core_properties.title or writer.title
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=_metadata(word),
        left_out=elements_left_out([word.element.body], _NOT_READ),
    )


def _check_archive(data: bytes) -> None:
    """Refuse a file that is not an archive, or an archive that unpacks to too much."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("it is encrypted, or a .doc of old; save it as .docx without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile as error:
        raise DocumentError(f"it is not a whole DOCX file ({error}); save it again") from error
    size = sum(member.file_size for member in members)
    if size > MAX_CONTAINER_BYTES:
        raise too_large("unpacked file", f"{size:,}", MAX_CONTAINER_BYTES)
    size = sum(member.file_size for member in members if member.filename.endswith((".xml", ".rels")))
    if size > MAX_XML_BYTES:
        raise too_large("unpacked text with its marks", f"{size:,}", MAX_XML_BYTES)


def _metadata(word: _Element) -> dict[str, MetadataValue]:
    properties = word.core_properties
    fields: dict[str, MetadataValue] = {
        "authors": [name.strip() for name in (properties.author or "").split(";") if name.strip()],
        "keywords": properties.keywords,
        "subject": properties.subject,
        "language": properties.language,
    }
    return {field: value for field, value in fields.items() if value}


def _related(word: _Element, kind: str) -> _Element | None:
    """The root of a part to which the document refers; None where there is no readable part."""
    try:
        return parse_xml(word.part.part_related_by(kind).blob)
    except (KeyError, ValueError, etree.XMLSyntaxError):
        return None


class _Writer:
    def __init__(self, word: _Element) -> None:
        self.blocks = Blocks()
        self.title = ""
        self._styles = Styles(_related(word, RELATIONSHIP_TYPE.STYLES))
        self._numbering = Numbering(_related(word, RELATIONSHIP_TYPE.NUMBERING))
        self._notes: dict[tuple[str, str], _Element] = {}
        for name, kind in _NOTES:
            root = _related(word, kind)
            for note in root.iterchildren(qn(f"w:{name}")) if root is not None else ():
                self._notes[name, note.get(qn("w:id"), "")] = note
        self._is_after_item = False

    def write(self, block: _Element) -> None:
        """Write a paragraph or a table, and the notes to which it refers for the first time."""
        if block.tag == qn("w:tbl"):
            self.blocks.add("\n".join(rows_of(block)))
            self._is_after_item = False
        elif self._styles.name(block.style or "").startswith("toc "):
            return
        else:
            self._write_paragraph(block)
        for reference in note_references(block):
            note = self._notes.pop(reference, None)
            if note is not None:
                self.blocks.add(text_of(note).strip())
                self._is_after_item = False

    def _write_paragraph(self, paragraph: _Element) -> None:
        text = text_of(paragraph)
        style = paragraph.style or ""
        name = self._styles.name(style)
        if not self.title and name == "title":
            self.title = one_line(text)
        level = outline_level(paragraph)
        if level is None:
            level = self._styles.level(style)
        is_heading = level is not None and level < _TEXT_LEVEL
        label = self._label(paragraph, style) if text.strip() else None
        if label is None and name.startswith("list "):
            label = BULLET
        is_item = label is not None and not is_heading
        if level is not None and is_heading:
            number = label if label and label != BULLET else ""
            self.blocks.add_heading(f"{number} {text}", level + 1)
        elif text.strip():
            separator = "\n" if is_item and self._is_after_item else "\n\n"
            self.blocks.add(f"{label} {text.strip()}".strip() if is_item else text.rstrip(), separator)
        self._is_after_item = is_item

    def _label(self, paragraph: _Element, style: str) -> str | None:
        """The number or bullet of a paragraph; None where it is in no list."""
        own, of_style = number_of(paragraph), self._styles.number(style)
        number = NumberOf(own.num_id or of_style.num_id, own.level if own.level is not None else of_style.level)
        if number.num_id is None or number.num_id == "0":
            return None
        level = number.level
        if level is None:
            level = self._numbering.level_of_style(number.num_id, style)
        return self._numbering.label(number.num_id, min(level, N_LEVELS - 1))


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
    return " ".join(_math_text(child, depth) for child in node)


_WRITERS: Mapping[str, Callable[[_Element, int], str]] = {
    "f": _fraction, "sSup": _scripts, "sSub": _scripts, "sSubSup": _scripts, "sPre": _scripts, "rad": _root,
    "nary": _sum, "d": _delimited, "func": _function, "limLow": _limit, "limUpp": _limit, "m": _matrix,
    "eqArr": _lines, "acc": _accented, "oMathPara": _paragraph,
}  # fmt: skip
