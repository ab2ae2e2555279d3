"""Requests and results of reading as bytes, from one process to another: JSON, so that no message can run code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any

from engine.document import Document, Section
from engine.readers import Unreadable
from indexer.reading.requests import Request

_FIELDS = [one.name for one in fields(Document)]
_SECTIONS, _PAGES = _FIELDS.index("sections"), _FIELDS.index("pages")
_of_document = attrgetter(*_FIELDS)
_of_section = attrgetter(*(one.name for one in fields(Section)))
_ONE_TO_ONE = "latin-1"  # by which any bytes are text, and back


def pack_request(request: Request) -> bytes:
    """A request as bytes."""
    line = None if request.line is None else request.line.decode(_ONE_TO_ONE)
    return json.dumps(asdict(replace(request, line=None)) | {"line": line}).encode()


def unpack_request(message: bytes) -> Request:
    """The request that was packed."""
    values = json.loads(message)
    line = values.pop("line")
    return Request(**values, line=None if line is None else line.encode(_ONE_TO_ONE))


def pack(results: Iterable[Document | Unreadable | int]) -> bytes:
    """Results as bytes; a document that holds something else than plain values becomes `Unreadable`."""
    rows = [_row(result) for result in results]
    try:
        return json.dumps(rows).encode()
    except (TypeError, ValueError, RecursionError):
        return json.dumps([_plain(row) for row in rows]).encode()


def unpack(message: bytes) -> list[Document | Unreadable | int]:
    """The results that were packed.

    Raises:
        ValueError: these bytes hold something else.
    """
    try:
        return [_result(row) for row in json.loads(message)]
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _row(result: Document | Unreadable | int) -> object:
    if isinstance(result, int):
        return result
    if isinstance(result, Unreadable):
        return asdict(result)
    row = list(_of_document(result))
    row[_SECTIONS] = [_of_section(section) for section in result.sections]
    row[_FIELDS.index("metadata")] = dict(result.metadata)
    return row


def _plain(row: object) -> object:
    try:
        json.dumps(row)
    except (TypeError, ValueError, RecursionError) as error:
        values: Any = row
        reason = f"the parser gave no document ({error})"
        return asdict(Unreadable(values[_FIELDS.index("source")], reason, values[_FIELDS.index("doc_id")]))
    return row


def _result(row: Any) -> Document | Unreadable | int:  # noqa: ANN401
    if isinstance(row, int):
        return row
    if isinstance(row, dict):
        return Unreadable(**row)
    values: list[Any] = row
    values[_SECTIONS] = tuple([Section(heading, tuple(path), *rest) for heading, path, *rest in values[_SECTIONS]])
    values[_PAGES] = tuple(values[_PAGES])
    return Document(*values)
