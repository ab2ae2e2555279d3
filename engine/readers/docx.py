"""DOCX (Word): paragraphs, lists, tables, notes and equations in the order of the document; not comments."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any, TypeAlias

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from lxml import etree

from engine.errors import DocumentError
from engine.readers.docx_numbering import BULLET, N_LEVELS, Numbering
from engine.readers.docx_styles import NumberOf, Styles, number_of, outline_level
from engine.readers.docx_text import blocks_of, note_references, rows_of, text_of
from engine.readers.left_out import COMMENTS, FIGURES, OBJECTS, elements_left_out
from engine.readers.limits import MAX_CONTAINER_BYTES
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
