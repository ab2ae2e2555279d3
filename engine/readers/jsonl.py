"""JSON: one document an object; JSON lines: one object a line, read line by line.

The form is that of BEIR, with sections:

    {"_id" or "id": text or number, "title": text,
     "text": text  or  "sections": [{"heading" or "title": text, "text": text, "level": 1}],
     "metadata" or "meta": {...}}

The title is the first line of the text, as BEIR joins them. Where a record has
both `sections` and `text`, the sections are read. Metadata may be nested:
{"venue": {"name": "ACL"}} becomes "venue.name", a list of objects a list a field.
Other fields of the record are metadata too where they are a scalar or a list
of strings; other values (vectors, objects) are passed over there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from engine.document import Document, MetadataValue
from engine.errors import DocumentError
from engine.readers.assembly import Blocks, assemble
from engine.readers.encoding import clean, decode
from engine.readers.limits import MAX_DOCUMENT_BYTES, too_large
from engine.readers.unreadable import Unreadable

_OWN_FIELDS = frozenset(["_id", "id", "title", "text", "sections", "metadata", "meta"])
_MAX_LINE_BYTES = 2 * MAX_DOCUMENT_BYTES  # JSON may write one character as six
_LARGEST_INT = 2**63 - 1


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read one JSON object; its own id, where it has one, is metadata.

    Raises:
        DocumentError: it is not one object of the form above.
    """
    record = _parse(decode(data))
    own_id = record.get("_id", record.get("id"))
    metadata: dict[str, MetadataValue] = {"id": own_id} if isinstance(own_id, str | int) else {}
    return _document(record, doc_id, source, metadata)


def stream(lines: BinaryIO, source: str) -> Iterator[Document | Unreadable]:
    """Read JSON lines in UTF-8; a bad line becomes `Unreadable`, the others are read."""
    number = 0
    while line := lines.readline(_MAX_LINE_BYTES + 1):
        number += 1
        place = f"{source}:{number}"
        if len(line) > _MAX_LINE_BYTES:
            _skip_line(lines, line)
            yield Unreadable(place, str(too_large("line", f"more than {_MAX_LINE_BYTES:,}", _MAX_LINE_BYTES)))
        elif line.strip():
            yield _read_line(line, place)


def _skip_line(lines: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = lines.readline(2**20)


def _read_line(line: bytes, place: str) -> Document | Unreadable:
    doc_id = ""
    try:
        record = _parse(line.decode("utf-8-sig"))
        doc_id = _id_of(record)
        return _document(record, doc_id, place, {})
    except DocumentError as error:
        return Unreadable(place, str(error), doc_id)
    except UnicodeDecodeError as error:
        return Unreadable(place, f"the line is not UTF-8 (byte {error.start}); convert the file to UTF-8")


def _parse(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"it is not JSON: {error}") from error
    if not isinstance(record, dict):
        kind = type(record).__name__
        raise DocumentError(f"it is a JSON {kind}, not an object; write one object a line into a .jsonl file")
    return record


def _id_of(record: Mapping[str, Any]) -> str:
    own_id = record.get("_id", record.get("id"))
    if isinstance(own_id, bool) or not isinstance(own_id, str | int | float) or not str(own_id).strip():
        raise DocumentError('the record has no id; give it a field "_id" with a text or a number')
    return str(own_id)


def _document(record: Mapping[str, Any], doc_id: str, source: str, metadata: dict[str, MetadataValue]) -> Document:
    title = _text_of(record, "title")
    for key, value in record.items():
        if key not in _OWN_FIELDS and _is_plain(value):
            metadata[key] = _checked(key, value)
    metadata |= _flat("", record.get("metadata") or record.get("meta") or {})
    blocks = Blocks()
    blocks.add(title)
    if record.get("sections"):
        _add_sections(blocks, record["sections"])
    else:
        blocks.add(_text_of(record, "text"))
    return assemble(
        blocks.text, blocks.headings, doc_id=doc_id, source=source, title=title or doc_id, metadata=metadata
    )


def _text_of(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n\n".join(value)
    if not isinstance(value, str):
        raise DocumentError(f'the field "{field}" is {type(value).__name__}, not text')
    return clean(value)


def _add_sections(blocks: Blocks, sections: object) -> None:
    if not isinstance(sections, list):
        raise DocumentError(f'the field "sections" is {type(sections).__name__}, not a list of objects')
    for number, section in enumerate(sections):
        if not isinstance(section, dict):
            raise DocumentError(f"section {number} is {type(section).__name__}, not an object with heading and text")
        level = section.get("level")
        title = _text_of(section, "heading") or _text_of(section, "title")
        blocks.add_heading(title, level if isinstance(level, int) and level > 0 else 1)
        blocks.add(_text_of(section, "text"))


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


def _flat(prefix: str, value: object) -> dict[str, MetadataValue]:
    """Nested objects become dotted keys."""
    if isinstance(value, dict):
        flat: dict[str, MetadataValue] = {}
        for key, inner in value.items():
            flat |= _flat(f"{prefix}.{key}" if prefix else key, inner)
        return flat
    if not prefix:
        raise DocumentError(f'the field "metadata" is {type(value).__name__}, not an object')
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return _by_field(prefix, value)
    return {prefix: _checked(prefix, value)}


def _by_field(prefix: str, objects: list[dict[str, object]]) -> dict[str, MetadataValue]:
    fields = dict.fromkeys(key for item in objects for key in item)
    columns = {f"{prefix}.{field}": [item[field] for item in objects if field in item] for field in fields}
    return {key: _checked(key, column) for key, column in columns.items()}


def _checked(key: str, value: object) -> MetadataValue:
    if isinstance(value, list):
        return [_checked_scalar(key, item) for item in value]
    return _checked_scalar(key, value)


def _checked_scalar(key: str, value: object) -> str | int | float | bool | None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DocumentError(f'metadata "{key}" is {value}, which no filter can compare; leave it out')
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise DocumentError(f'metadata "{key}" holds a {type(value).__name__} in a list; give scalars or lists of scalars')
