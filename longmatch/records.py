"""Converts a dict of a user to a `Document`, and divides a document that has no sections. Reads no file.

A dict has the form of a line of JSON lines, see `engine.readers.jsonl`: a text, or sections with heading and
text; optionally id, title and metadata. Other fields are metadata if they are a scalar or a list of strings.
A record without id gets one from its title and text, so that the same content has the same id in every run.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from engine.errors import DocumentError
from engine.readers import jsonl
from engine.readers.fields import Fields
from engine.text.document import Document, text_id, text_title
from engine.text.segmentation import divide

_IDS = ("_id", "id")
_METADATA = ("metadata", "meta")
_RESERVED = frozenset({"_id", "id", "title", "text", "sections", *_METADATA})


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of a record, or columns of a table, that hold text, id and title; None is the usual name."""

    text: str | None = None  # usually "text"
    id: str | None = None  # usually "_id" or "id"
    title: str | None = None  # usually "title"

    @property
    def fields(self) -> Fields:
        """The same names for the records of files."""
        return Fields(self.text, self.title, self.id)

    def missing(self, names: list[str]) -> str | None:
        """The problem of a record or table with these field names; None if no needed field is missing."""
        if self.text is None and not {"text", "sections"} & set(names):
            return f"no field 'text' among {names}; name the one that holds the text: text='{_guess(names)}'"
        for argument, name in (("text", self.text), ("id", self.id), ("title", self.title)):
            if name is not None and name not in names:
                return f"no field {name!r} among {names}; change {argument}={name!r}"
        return None


def whole_document(document: Document) -> Document:
    """A document with sections: unchanged if it has some, otherwise divided like a text without headings."""
    return document if document.sections else replace(document, sections=divide(document.text))


def record_document(record: Mapping[Any, Any], columns: Columns) -> Document:
    """A dict as a document.

    Raises:
        DocumentError: a field is missing or has another type, or there is no text.
    """
    fields = {str(key): value for key, value in record.items()}
    if (problem := columns.missing(list(fields))) is not None:
        raise DocumentError(problem)
    doc_id = _id(fields, columns)
    try:
        # Through the JSON reader, so that a dict is read like a line of a file.
        line = json.dumps(_as_json(fields, columns)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"the record cannot be stored ({error}); give texts, numbers, True or False") from error
    document = jsonl.read_one(line, doc_id or "", "")
    has_title = document.title != (doc_id or "")
    return replace(
        document,
        doc_id=text_id(document.title, document.text) if doc_id is None else doc_id,
        title=document.title if has_title else text_title(document.text),
    )


def _as_json(fields: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    used = {columns.text, columns.id, columns.title}
    made = {key: _plain(value) for key, value in fields.items() if _is_metadata(key, value) and key not in used}
    made["title"] = _plain(fields.get(columns.title or "title"))
    made["metadata"] = _plain(next((fields[key] for key in _METADATA if key in fields), None))
    if columns.text is None and fields.get("sections"):
        return made | {"sections": _plain(fields["sections"])}
    name = columns.text or "text"
    text = _plain(fields.get(name))
    if text is None:
        raise DocumentError(f"the field {name!r} is empty; leave the record out")
    return made | {"text": text}


def record_id(record: Mapping[Any, Any], columns: Columns) -> str | None:
    """The id of a record as a text; None if the record has no usable id."""
    try:
        return _id(record, columns)
    except DocumentError:
        return None


def is_missing(value: object) -> bool:
    """Whether a value is None, or a missing value of a table: NaN, NA or NaT."""
    return _plain(value) is None


def _id(fields: Mapping[Any, Any], columns: Columns) -> str | None:
    name = columns.id or next((key for key in _IDS if not is_missing(fields.get(key))), None)
    if name is None:
        return None
    value = _plain(fields.get(name))
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise DocumentError(f"the id in {name!r} is {value!r:.40}; give a text or a number")
    return str(value)


def _is_metadata(key: str, value: object) -> bool:
    """Whether a field without another role is metadata: a scalar or a list of strings, no vectors, no objects."""
    if key in _RESERVED:
        return False
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    if getattr(value, "ndim", 0):  # a numpy array; of objects if a table holds lists of strings
        dtype = getattr(value, "dtype", None)
        return getattr(dtype, "kind", "") in "OU" and all(isinstance(one, str) for one in _plain(value))
    return isinstance(_plain(value), str | int | float)


def _plain(value: object) -> Any:  # noqa: ANN401
    """A value that JSON can hold: numpy as plain Python, dates in ISO format, None for a missing value."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value else None
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    to_python = getattr(value, "tolist", None)  # of numpy
    return _plain(to_python()) if to_python is not None else value


def _guess(names: list[str]) -> str:
    """The name that most likely holds the text."""
    usual = ("body", "content", "contents", "abstract", "document", "article", "passage")
    return next((name for name in names if name.lower() in usual), names[0] if names else "COLUMN")
