"""JSON: one document an object; JSON lines: one object a line, read line by line.

The form is that of BEIR, with sections:

    {"_id" or "id": text or number, "title": text,
     "text": text  or  "sections": [{"heading" or "title": text, "text": text, "level": 1, "kind": text}],
     "metadata" or "meta": {...}}

The title is the first line of the text, as BEIR joins them. Where a record has
both `sections` and `text`, the sections are read. The kind of a section with a
heading, such as "claims", becomes metadata: "kind.claims" lists the headings, and
weights of sections can refer to them by kind. Metadata can be nested:
{"venue": {"name": "ACL"}} becomes "venue.name", a list of objects becomes one list
for each field. Other fields of the record become metadata too where they are a scalar
or a list of strings; other values (vectors, objects) are skipped.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, cast

from engine.errors import DocumentError
from engine.readers.encoding import decode
from engine.text.blocks import Blocks
from engine.text.cleaning import MAX_DOCUMENT_BYTES, clean, one_line, too_large
from engine.text.document import KIND, Document, MetadataValue, Scalar, Unreadable, assemble

_OWN_FIELDS = frozenset(["_id", "id", "title", "text", "sections", "metadata", "meta"])
_MAX_LINE_BYTES = 2 * MAX_DOCUMENT_BYTES  # JSON may write one character as six
_BUFFER_BYTES = 2**20
_MAX_BRACKETS = 3_000_000  # an object that is five characters of JSON takes 200 bytes of memory
_MAX_KEY_CHARS = 1_000  # of a dotted key of metadata
_LARGEST_INT = 2**63 - 1


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read one JSON object; its own id, where it has one, is metadata.

    Raises:
        DocumentError: the data is not one object of the form that the module describes.
    """
    record = _parse(decode(data))
    own_id = record.get("_id", record.get("id"))
    metadata: dict[str, MetadataValue] = {"id": own_id} if isinstance(own_id, str | int) else {}
    return _document(record, doc_id, source, metadata)


def stream(lines: BinaryIO, source: str) -> Iterator[Document | Unreadable]:
    """Read JSON lines in UTF-8; a bad line becomes `Unreadable`, the others are read."""
    reader: io.BufferedReader[Any] = (
        lines if isinstance(lines, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, lines), _BUFFER_BYTES)
    )
    number = 0
    try:
        while line := reader.readline(_MAX_LINE_BYTES + 1):
            number += 1
            place = f"{source}:{number}"
            if len(line) > _MAX_LINE_BYTES:
                _skip_line(reader, line)
                yield Unreadable(place, str(too_large("line", f"more than {_MAX_LINE_BYTES:,}", _MAX_LINE_BYTES)))
            elif line.strip():
                yield _read_line(line, place)
            else:
                number += _skip_blank_lines(reader)
    finally:
        if reader is not lines:
            reader.detach()  # the stream belongs to the caller


def _skip_blank_lines(reader: io.BufferedReader[Any]) -> int:
    """Skip the blank lines that are in the buffer; returns their number."""
    ahead = reader.peek()
    n_blank = len(ahead) - len(ahead.lstrip())
    n_bytes = ahead.rfind(b"\n", 0, n_blank) + 1
    reader.read(n_bytes)
    return ahead.count(b"\n", 0, n_bytes)


def _skip_line(lines: io.BufferedReader[Any], line: bytes) -> None:
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
    n_brackets = text.count("{") + text.count("[")
    if n_brackets > _MAX_BRACKETS:
        raise DocumentError(f"it has {n_brackets:,} brackets, the limit is {_MAX_BRACKETS:,}; leave out nested values")
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
    _flatten("", record.get("metadata") or record.get("meta") or {}, metadata)
    blocks = Blocks()
    blocks.add(title)
    if record.get("sections"):
        metadata |= _add_sections(blocks, record["sections"])
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


def _add_sections(blocks: Blocks, sections: object) -> dict[str, list[Scalar]]:
    """Add all sections to the text; returns the headings of sections with a kind, by metadata field."""
    if not isinstance(sections, list):
        raise DocumentError(f'the field "sections" is {type(sections).__name__}, not a list of objects')
    kinds: dict[str, list[Scalar]] = {}
    for number, section in enumerate(sections):
        if not isinstance(section, dict):
            raise DocumentError(f"section {number} is {type(section).__name__}, not an object with heading and text")
        level = section.get("level")
        title = _text_of(section, "heading") or _text_of(section, "title")
        blocks.add_heading(title, level if isinstance(level, int) and level > 0 else 1)
        blocks.add(_text_of(section, "text"))
        kind = section.get("kind")
        if title and isinstance(kind, str) and kind.strip():
            kinds.setdefault(f"{KIND}{one_line(kind)}", []).append(one_line(title))
    return kinds


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


def flattened(value: Mapping[str, object]) -> dict[str, MetadataValue]:
    """Nested values under dotted keys.

    Raises:
        DocumentError: a value that no filter can compare.
    """
    flat: dict[str, MetadataValue] = {}
    _flatten("", value, flat)
    return flat


def _flatten(prefix: str, value: object, flat: dict[str, MetadataValue]) -> None:
    """Add a value to `flat`; nested objects become dotted keys."""
    if len(prefix) > _MAX_KEY_CHARS:
        raise DocumentError(
            f"the metadata is nested too deeply: {prefix[:40]}... is over {_MAX_KEY_CHARS:,} characters"
        )
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{prefix}.{key}" if prefix else key, inner, flat)
    elif not prefix:
        raise DocumentError(f'the field "metadata" is {type(value).__name__}, not an object')
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        columns: dict[str, list[object]] = {}
        for item in value:
            for field, inner in item.items():
                columns.setdefault(f"{prefix}.{field}", []).append(inner)
        flat |= {key: _checked(key, column) for key, column in columns.items()}
    else:
        flat[prefix] = _checked(prefix, value)


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
