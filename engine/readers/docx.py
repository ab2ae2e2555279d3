"""DOCX (Word): paragraphs, lists and tables in the order of the document; not contents, notes and comments."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import docx
from docx.oxml.ns import qn

from engine.document import Document, MetadataValue
from engine.errors import DocumentError
from engine.readers.assembly import Blocks, assemble, one_line
from engine.readers.limits import MAX_CONTAINER_BYTES, too_large

_Element: TypeAlias = Any
_TEXT, _TAB, _BREAK, _LINE = qn("w:t"), qn("w:tab"), qn("w:br"), qn("w:cr")
_HYPHEN = qn("w:noBreakHyphen")
_CHARACTERS = {_TAB: "\t", _BREAK: "\n", _LINE: "\n", _HYPHEN: "\u2011"}
_SKIPPED = frozenset(
    [
        qn("w:del"),
        qn("w:moveFrom"),
        qn("w:pPr"),
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    ]
)


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a Word document as if all its tracked changes were accepted.

    A heading is a paragraph with an outline level, its own or that of its style. The
    title is that of the properties, else the first paragraph of style Title.

    Raises:
        DocumentError: not a Word document, too large, or no text.
    """
    _check_archive(data)
    try:
        word = docx.Document(io.BytesIO(data))
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DocumentError(f"it is a damaged DOCX file ({error}); save it again") from error
    except (KeyError, ValueError) as error:
        raise DocumentError("it is a zip file but not a Word document; save it as .docx") from error
    writer = _Writer(word)
    writer.write(word.element.body)
    blocks = writer.blocks
    title = word.core_properties.title or writer.title
    return assemble(blocks.text, blocks.headings, doc_id=doc_id, source=source, title=title, metadata=_metadata(word))


def _check_archive(data: bytes) -> None:
    """Refuse what is no archive, or one that unpacks to too much."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("it is encrypted, or a .doc of old; save it as .docx without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile as error:
        raise DocumentError(f"it is not a whole DOCX file ({error}); save it again") from error
    if size > MAX_CONTAINER_BYTES:
        raise too_large("unpacked file", f"{size:,}", MAX_CONTAINER_BYTES)


def _metadata(word: _Element) -> dict[str, MetadataValue]:
    properties = word.core_properties
    fields: dict[str, MetadataValue] = {
        "authors": [name.strip() for name in (properties.author or "").split(";") if name.strip()],
        "keywords": properties.keywords,
        "subject": properties.subject,
        "language": properties.language,
    }
    return {field: value for field, value in fields.items() if value}


class _Writer:
    def __init__(self, word: _Element) -> None:
        self.blocks = Blocks()
        self.title = ""
        self._styles = {style.style_id: style for style in word.styles}
        self._levels: dict[str, int | None] = {}
        self._is_after_item = False

    def write(self, body: _Element) -> None:
        """Write the blocks of a body; content controls are opened, tables are not."""
        for block in _blocks(body):
            if block.tag == qn("w:tbl"):
                self.blocks.add("\n".join(_rows(block)))
                self._is_after_item = False
            else:
                self._write_paragraph(block)

    def _write_paragraph(self, paragraph: _Element) -> None:
        text = _text_of(paragraph)
        style = paragraph.style or ""
        if self._name(style).startswith("toc "):
            return
        if not self.title and self._name(style) == "title":
            self.title = one_line(text)
        level = _outline_level(paragraph)
        if level is None:
            level = self._level_of_style(style)
        is_item = level is None and (_is_numbered(paragraph) or self._name(style).startswith("list "))
        if level is not None and level < 9:
            self.blocks.add_heading(text, level + 1)
        elif text.strip():
            separator = "\n" if is_item and self._is_after_item else "\n\n"
            self.blocks.add(f"- {text.strip()}" if is_item else text.rstrip(), separator)
        self._is_after_item = is_item

    def _name(self, style_id: str) -> str:
        style = self._styles.get(style_id)
        return (style.name or "").lower() if style is not None else style_id.lower()

    def _level_of_style(self, style_id: str) -> int | None:
        """Outline level of a style or of the nearest style that it is based on."""
        if style_id not in self._levels:
            self._levels[style_id] = None  # also ends a circle of styles
            style = self._styles.get(style_id)
            level = _outline_level(style.element) if style is not None else None
            if level is None and self._name(style_id).startswith("heading "):
                number = self._name(style_id).split()[1]
                level = int(number) - 1 if number.isdecimal() else None
            if level is None and style is not None and getattr(style, "base_style", None) is not None:
                level = self._level_of_style(style.base_style.style_id)
            self._levels[style_id] = level
        return self._levels[style_id]


def _blocks(body: _Element) -> Iterator[_Element]:
    for child in body:
        if child.tag in (qn("w:p"), qn("w:tbl")):
            yield child
        elif child.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:moveTo"), qn("w:customXml")):
            yield from _blocks(child)


def _rows(table: _Element) -> Iterator[str]:
    for row in table.iter(qn("w:tr")):
        cells = [one_line(" ".join(_text_of(p) for p in cell.iter(qn("w:p")))) for cell in row.iterchildren(qn("w:tc"))]
        yield " | ".join(cells)


def _text_of(paragraph: _Element) -> str:
    parts: list[str] = []
    todo = [paragraph]
    while todo:
        node = todo.pop()
        if node.tag == _TEXT:
            parts.append(node.text or "")
        elif node.tag in _CHARACTERS:
            parts.append(_CHARACTERS[node.tag])
        elif node.tag not in _SKIPPED:
            todo.extend(reversed(node))
    return "".join(parts)


def _outline_level(element: _Element) -> int | None:
    level = element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
    value = level.get(qn("w:val")) if level is not None else None
    return int(value) if value and value.isdecimal() else None


def _is_numbered(paragraph: _Element) -> bool:
    number = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}/{qn('w:numId')}")
    return number is not None and number.get(qn("w:val")) != "0"
