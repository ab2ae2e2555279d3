"""Plain text: the text stays as it is in the file; headings are recognised by the form of their lines."""

from __future__ import annotations

import re

from engine.readers.encoding import decode
from engine.readers.scalars import typed_scalar
from engine.text.document import Document, assemble
from engine.text.headings import find_headings
from engine.text.numbering import could_be_title

_FIELD = re.compile(r"([A-Z][A-Za-z-]{1,30}):[ \t]+(\S.*)")
_COLUMNS = re.compile(r"\S(?: {3,}|\t)\S")


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read plain text; a form feed ends a page.

    A first block of `Name: value` lines, as PEPs and mails have, is metadata under
    names in lower case, and stays in the text. The title is its Title or Subject, or
    the first block of one or two short lines without the marks of a sentence, else
    the file's name.

    Raises:
        DocumentError: no text, too much, or not decodable.
    """
    text = decode(data)
    pages = (0, *(match.end() for match in re.finditer("\f", text))) if "\f" in text else ()
    fields = header_fields(text)
    metadata = {name: typed_scalar(value) for name, value in fields.items() if name not in ("title", "subject")}
    title = fields.get("title") or fields.get("subject") or _title(text)
    return assemble(
        text, find_headings(text), doc_id=doc_id, source=source, title=title, metadata=metadata, pages=pages
    )


def header_fields(text: str) -> dict[str, str]:
    """The fields of a first block in which every line is `Name: value` or continues the line before.

    Names are in lower case; empty where the text has no such block of two fields or more.
    """
    fields: dict[str, str] = {}
    name = ""
    for line in re.split(r"\n[ \t]*\n", text[:4000].lstrip("\n"), maxsplit=1)[0].split("\n"):
        if match := _FIELD.fullmatch(line):
            name = match[1].lower()
            fields[name] = match[2].strip()
        elif name and line.startswith((" ", "\t")):
            fields[name] += " " + line.strip()
        else:
            return {}
    return fields if len(fields) > 1 else {}


def _title(text: str) -> str:
    """The first block that could be a title; only blocks of columns can be above it, as in RFCs."""
    for block in re.split(r"\n[ \t]*\n\s*", text[:4000].strip("\n\f "))[:3]:
        lines = [line for line in block.split("\n") if re.search(r"\w", line)]
        if len(lines) in (1, 2) and not _COLUMNS.search(block.strip()):
            title = " ".join(line.strip(" \t#*=") for line in lines)
            return title if could_be_title(title) else ""
        if not all(_COLUMNS.search(line.strip()) for line in lines[:1]):
            return ""
    return ""
