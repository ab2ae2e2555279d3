"""Requests and results of reading as bytes, from one process to another: JSON, so that no message can run code.

The texts of documents, most of a message, follow the JSON as they are, since escaping and parsing them takes longer
than all else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from engine.readers import Unreadable
from engine.text.document import Document
from engine.text.spans import Section
from indexer.reading.requests import Request

_FIELDS = [one.name for one in fields(Document)]
_TEXT, _SECTIONS, _PAGES = (_FIELDS.index(name) for name in ("text", "sections", "pages"))
_of_document = attrgetter(*_FIELDS)
_of_section = attrgetter(*(one.name for one in fields(Section)))
_ONE_TO_ONE = "latin-1"  # decodes any bytes, and encodes them back
_ANY_TEXT = "surrogatepass"  # a parser may leave half a surrogate pair in a text
_LAST = b"!"  # begins the message after which a batch is answered


def pack_requests(requests: Iterable[Request]) -> bytes:
    """Requests as bytes."""
    rows = []
    for request in requests:
        line = None if request.line is None else request.line.decode(_ONE_TO_ONE)
        rows.append([request.source, request.doc_id, line, request.n_skipped, request.is_unbatched])
    return json.dumps(rows).encode()


def unpack_requests(message: bytes) -> list[Request]:
    """The requests that were packed."""
    return [
        Request(source, doc_id, None if line is None else line.encode(_ONE_TO_ONE), *rest)
        for source, doc_id, line, *rest in json.loads(message)
    ]


def pack(results: Iterable[Document | Unreadable | int], *, is_last: bool = False) -> bytes:
    """Results as bytes; a document that holds anything but plain values becomes `Unreadable`.

    Args:
        results: of one batch of requests.
        is_last: whether no more results of the batch follow.
    """
    rows = [_row(result) for result in results]
    try:
        message = _message(rows)
    except (AttributeError, TypeError, ValueError, RecursionError):
        message = _message([_plain(row) for row in rows])
    return _LAST + message if is_last else message


def ends_answer(message: bytes) -> bool:
    """Whether no other results of a batch follow."""
    return message.startswith(_LAST)


def unpack(message: bytes) -> list[Document | Unreadable | int]:
    """The results that were packed.

    Raises:
        ValueError: these bytes hold something else.
    """
    try:
        start, stop = len(_LAST) if ends_answer(message) else 0, message.index(b"\n")
        return list(_results(json.loads(message[start:stop]), memoryview(message)[stop + 1 :]))
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


def _message(rows: Iterable[object]) -> bytes:
    """Rows, each with the length of its text in bytes, in one line; after it the texts."""
    heads, texts = [], []
    for row in rows:
        if isinstance(row, list):
            text = row[_TEXT].encode(errors=_ANY_TEXT)
            texts.append(text)
            row = [*row[:_TEXT], len(text), *row[_TEXT + 1 :]]
        heads.append(row)
    return b"".join([json.dumps(heads).encode(), b"\n", *texts])


def _plain(row: object) -> object:
    try:
        _message([row])
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        values: Any = row
        reason = f"the parser gave no document ({error})"
        return asdict(Unreadable(values[_FIELDS.index("source")], reason, values[_FIELDS.index("doc_id")]))
    return row


def _results(rows: list[Any], texts: memoryview) -> Iterator[Document | Unreadable | int]:
    start = 0
    for row in rows:
        if isinstance(row, int):
            yield row
        elif isinstance(row, dict):
            yield Unreadable(**row)
        else:
            text = texts[start : start + row[_TEXT]]
            start, row[_TEXT] = start + row[_TEXT], str(text, errors=_ANY_TEXT)
            row[_SECTIONS] = tuple([Section(heading, tuple(path), *rest) for heading, path, *rest in row[_SECTIONS]])
            row[_PAGES] = tuple(row[_PAGES])
            yield Document(*row)
