"""ODT (OpenDocument text): headings, paragraphs, lists, tables and notes; not contents, comments and changes."""

from __future__ import annotations

import re

from lxml import etree

from engine.errors import DocumentError
from engine.readers.archive import Archive
from engine.readers.left_out import COMMENTS, FIGURES, OBJECTS, elements_left_out
from engine.readers.markup import Element, Grammar, HeadingMark, local_name, parse_safely, words, write
from engine.text.blocks import Blocks
from engine.text.document import Document, MetadataValue, assemble

_DROPPED = frozenset([
    "alphabetical-index", "annotation", "annotation-end", "bibliography-source", "forms", "illustration-index",
    "sequence-decls", "shape", "table-index", "table-of-content", "tracked-changes", "user-index",
    "variable-decls",
])  # fmt: skip
_SPACES = frozenset(["s", "tab"])
_DRAWING_WORDS = re.compile(r"\{.*svg.*\}(title|desc)$")  # alternative text of a picture
_PARAGRAPHS = frozenset(["p", "h"])


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read an OpenDocument text. A note follows the paragraph that refers to it.

    The title is that of the properties, else the first paragraph of style Title.

    Raises:
        DocumentError: not an ODT file, encrypted, too large, or no text.
    """
    archive = Archive(data, "ODT")
    if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise DocumentError("it is encrypted; save it without a password")
    root = parse_safely(archive.read("content.xml"))
    body = root.find("{*}body/{*}text")
    if body is None:
        raise DocumentError("it is not an OpenDocument text; save it as .odt")
    _space(body)
    _move_notes(body)
    blocks = Blocks()
    write(body, _GRAMMAR, blocks)
    meta = parse_safely(archive.read("meta.xml")) if "meta.xml" in archive else None
    title = ("" if meta is None else words(meta.find(".//{*}meta/{*}title"))) or _titled(body)
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=_metadata(meta),
        left_out=elements_left_out([body], {"image": FIGURES, "object": OBJECTS, "annotation": COMMENTS}),
    )


def _space(body: Element) -> None:
    """Replace each element that stands for spaces or a tab by one space."""
    for element in body.iter(etree.Element):
        if local_name(element) in _SPACES:
            element.text = " "


def _move_notes(body: Element) -> None:
    """Move the notes of a paragraph behind it, and leave their numbers in brackets in the paragraph."""
    for note in reversed(list(body.iter("{*}note"))):
        paragraph = next((above for above in note.iterancestors() if local_name(above) in _PARAGRAPHS), None)
        text = note.find("{*}note-body")
        if paragraph is None or text is None or paragraph.getparent() is None:
            continue
        number = words(note.find("{*}note-citation"))
        text.tag = "note"
        first = text.find("{*}p")
        if first is not None and number:
            first.text = f"[{number}] {first.text or ''}"
        for child in list(note):
            note.remove(child)
        note.text = f"[{number}]" if number else ""
        note.tag = "reference"
        text.tail, paragraph.tail = paragraph.tail, None
        paragraph.addnext(text)


def _titled(body: Element) -> str:
    """The first paragraph of style Title."""
    return words(next((p for p in body.iter("{*}p") if ("style-name", "Title") in _attributes(p)), None))


def _attributes(element: Element) -> list[tuple[str, str]]:
    return [(name.rpartition("}")[2], value) for name, value in element.items()]


def _is_dropped(element: Element) -> bool:
    if local_name(element) in _DROPPED or _DRAWING_WORDS.match(element.tag):
        return True
    return ("display", "none") in _attributes(element)


def _heading(element: Element) -> HeadingMark | None:
    if local_name(element) != "h":
        return None
    level = dict(_attributes(element)).get("outline-level", "1")
    return HeadingMark(int(level) if re.fullmatch(r"[1-9]|10", level) else 1)


_BLOCKS = frozenset([
    "bibliography", "frame", "index-body", "list", "note", "p", "section", "table", "text", "text-box",
])  # fmt: skip
_GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["list-item", "list-header"]),
    rows=frozenset(["table-row"]),
    cells=frozenset(["table-cell"]),
    breaks=frozenset(["line-break"]),
    verbatim=frozenset(),
    is_dropped=_is_dropped,
    heading=_heading,
)


def _metadata(meta: Element | None) -> dict[str, MetadataValue]:
    if meta is None:
        return {}
    date = words(meta.find(".//{*}creation-date")) or words(meta.find(".//{*}date"))
    author = words(meta.find(".//{*}initial-creator")) or words(meta.find(".//{*}creator"))
    fields: dict[str, MetadataValue] = {
        "authors": [author] if author else [],
        "date": date[:10],
        "year": int(date[:4]) if re.match(r"\d{4}", date) else None,
        "keywords": [words(keyword) for keyword in meta.iter("{*}keyword")],
        "subject": words(meta.find(".//{*}subject")),
        "language": words(meta.find(".//{*}language")),
    }
    return {field: value for field, value in fields.items() if value}
