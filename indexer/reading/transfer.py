"""Requests and results of reading as bytes, from one process to another: JSON, so that no message can run code.

The texts of documents, most of a message, follow the JSON as they are, since escaping and parsing them takes longer
than all else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any

from engine.document import Document, Section
from engine.readers import Unreadable
from indexer.reading.requests import Request

_FIELDS = [one.name for one in fields(Document)]
_TEXT, _SECTIONS, _PAGES = (_FIELDS.index(name) for name in ("text", "sections", "pages"))
_of_document = attrgetter(*_FIELDS)
_of_section = attrgetter(*(one.name for one in fields(Section)))
_ONE_TO_ONE = "latin-1"  # by which any bytes are text, and back
_ANY_TEXT = "surrogatepass"  # a parser may leave half a surrogate pair in a text
_LAST = "!"  # begins the message after which a request is answered


def pack_request(request: Request) -> bytes:
    """A request as bytes."""
    line = None if request.line is None else request.line.decode(_ONE_TO_ONE)
    return json.dumps(asdict(replace(request, line=None)) | {"line": line}).encode()


def unpack_request(message: bytes) -> Request:
    """The request that was packed."""
    values = json.loads(message)
    line = values.pop("line")
    return Request(**values, line=None if line is None else line.encode(_ONE_TO_ONE))


def pack(results: Iterable[Document | Unreadable | int], *, is_last: bool = False) -> bytes:
    """Results as bytes; a document that holds something else than plain values becomes `Unreadable`.

    Args:
        results: of one request.
        is_last: whether no other results of the request follow.
    """
    rows = [_row(result) for result in results]
    try:
        message = _message(rows)
    except (TypeError, ValueError, RecursionError):
        message = _message([_plain(row) for row in rows])
    return (_LAST + message if is_last else message).encode(errors=_ANY_TEXT)


def ends_answer(message: bytes) -> bool:
    """Whether no other results of a request follow."""
    return message.startswith(_LAST.encode())


def unpack(message: bytes) -> list[Document | Unreadable | int]:
    """The results that were packed.

    Raises:
        ValueError: these bytes hold something else.
    """
    try:
        head, _, text = message.decode(errors=_ANY_TEXT).removeprefix(_LAST).partition("\n")
        return list(_results(json.loads(head), text))
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


def _message(rows: Iterable[object]) -> str:
    """Rows, each with the length of its text, in one line; after it the texts."""
    heads, texts = [], []
    for row in rows:
        if isinstance(row, list):
            texts.append(row[_TEXT])
            row = [*row[:_TEXT], len(row[_TEXT]), *row[_TEXT + 1 :]]
        heads.append(row)
    return f"{json.dumps(heads)}\n{''.join(texts)}"


def _plain(row: object) -> object:
    try:
        _message([row])
    except (TypeError, ValueError, RecursionError) as error:
        values: Any = row
        reason = f"the parser gave no document ({error})"
        return asdict(Unreadable(values[_FIELDS.index("source")], reason, values[_FIELDS.index("doc_id")]))
    return row


def _results(rows: list[Any], texts: str) -> Iterator[Document | Unreadable | int]:
    start = 0
    for row in rows:
        if isinstance(row, int):
            yield row
        elif isinstance(row, dict):
            yield Unreadable(**row)
        else:
            start, text = start + row[_TEXT], texts[start : start + row[_TEXT]]
            row[_TEXT] = text
            row[_SECTIONS] = tuple([Section(heading, tuple(path), *rest) for heading, path, *rest in row[_SECTIONS]])
            row[_PAGES] = tuple(row[_PAGES])
            yield Document(*row)
