"""Requests and results of reading: read here, grouped into batches, and packed as messages between processes."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, astuple, dataclass, fields, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePath
from typing import Any, TypeAlias, cast

from engine.readers import FORMATS, Unreadable, read_file
from engine.readers.fields import USUAL, Fields
from engine.text.document import Document, without_gz
from engine.text.spans import Section

Result: TypeAlias = Document | Unreadable | int  # a number is of a line, or ends the results of a request

_BUFFER_BYTES = 2**20
_PART_BYTES = 2**16  # of a line that is skipped


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read, or a line of JSON lines."""

    source: str  # path of the file; with `line`, for people alone
    doc_id: str | None = None  # by default the file name
    line: bytes | None = None  # read instead of the file
    n_skipped: int = 0  # results that are not wanted again
    fields: Fields = USUAL  # of records


def is_json_lines(source: str) -> bool:
    """Whether a file, by its name, may hold many documents."""
    form = FORMATS.get(PurePath(without_gz(source)).suffix.lower())
    return form is not None and form.read is None


def read_here(request: Request) -> Iterator[Document | Unreadable]:
    """Read a request in this process, without limits of time and memory."""
    return (result for result in results_of(request) if not isinstance(result, int))


def results_of(request: Request) -> Iterator[Result]:
    """Read a request; if it skips results of JSON lines, the line number of the last skipped one is yielded first."""
    if request.line is not None:
        from engine.readers import jsonl

        yield from jsonl.stream(io.BytesIO(request.line), request.source, request.fields)
    elif is_json_lines(request.source):
        yield from _results_of_lines(request)
    else:
        yield from islice(read_file(Path(request.source), request.doc_id, request.fields), request.n_skipped, None)


def _results_of_lines(request: Request) -> Iterator[Result]:
    from engine.readers import jsonl

    source, n_lines = request.source, 0
    try:
        with ExitStack() as files:
            file = cast(Any, files.enter_context(Path(source).open("rb", buffering=0)))
            if source.lower().endswith(".gz"):
                file = files.enter_context(gzip.GzipFile(fileobj=file))
            stream = io.BufferedReader(file, _BUFFER_BYTES)
            if request.n_skipped:
                n_lines = _skip_results(stream, request.n_skipped)
                yield n_lines
            for result in jsonl.stream(stream, source, request.fields):
                yield _moved(result, n_lines) if n_lines else result
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        yield Unreadable(source, f"it is not a whole gzip file ({error}); pack it again", _file_id(source))
    except OSError as error:
        yield Unreadable(source, error.strerror or str(error), _file_id(source))


def _file_id(source: str) -> str:
    return without_gz(PurePath(source).name)


def _moved(result: Document | Unreadable, n_lines: int) -> Document | Unreadable:
    """The result with the line number that it has in the whole file."""
    file, _, number = result.source.rpartition(":")
    return replace(result, source=f"{file}:{int(number) + n_lines}")


def _skip_results(stream: io.BufferedReader, n_results: int) -> int:
    """Skip `n_results` lines that are not blank, and the blank lines between them; returns the number of lines.

    Each line is read in parts, so that a long line needs little memory.
    """
    n_lines = 0
    while n_results and (part := stream.readline(_PART_BYTES)):
        is_blank = not part.strip()
        while not part.endswith(b"\n") and (part := stream.readline(_PART_BYTES)):
            is_blank = is_blank and not part.strip()
        n_lines += 1
        n_results -= not is_blank
    return n_lines


Batch: TypeAlias = list[Request]

_MOST_FILES = 32
_MOST_BYTES = 2**19  # of the files of a batch; a larger file is a batch of its own


def batches(requests: Iterable[Request]) -> Iterator[Batch]:
    """The requests in their order; each file of a batch of several holds one document."""
    batch: Batch = []
    n_bytes = 0
    for request in requests:
        size = _size(request)
        if batch and (len(batch) == _MOST_FILES or n_bytes + size > _MOST_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch.append(request)
        n_bytes += size
    if batch:
        yield batch


def _size(request: Request) -> int:
    """Bytes of a file; above `_MOST_BYTES` for a missing file, a line, or a file that can hold many documents."""
    if request.line is not None or is_json_lines(request.source):
        return _MOST_BYTES + 1
    try:
        return Path(request.source).stat().st_size
    except OSError:
        return _MOST_BYTES + 1


_FIELDS = [field.name for field in fields(Document)]
_TEXT, _SECTIONS, _PAGES, _PINS = (_FIELDS.index(name) for name in ("text", "sections", "pages", "pins"))
_of_document = attrgetter(*_FIELDS)
_of_section = attrgetter(*(one.name for one in fields(Section)))
_ONE_TO_ONE = "latin-1"  # decodes any bytes, and encodes them back
_ANY_TEXT = "surrogatepass"  # a parser may leave half a surrogate pair in a text


def pack_requests(requests: Iterable[Request], n_most: int = sys.maxsize) -> bytes:
    """Requests, and the most results of them that are wanted, as bytes."""
    rows = []
    for request in requests:
        line = None if request.line is None else request.line.decode(_ONE_TO_ONE)
        rows.append([request.source, request.doc_id, line, request.n_skipped, astuple(request.fields)])
    return json.dumps([n_most, rows]).encode()


def unpack_requests(message: bytes) -> tuple[list[Request], int]:
    """The requests that were packed, and their number of results."""
    n_most, rows = json.loads(message)
    return [
        Request(source, doc_id, None if line is None else line.encode(_ONE_TO_ONE), n_skipped, Fields(*names))
        for source, doc_id, line, n_skipped, names in rows
    ], n_most


def pack(results: Iterable[Result]) -> bytes:
    """Results as bytes; a document that holds anything but plain values becomes `Unreadable`."""
    rows = [_row(result) for result in results]
    try:
        return _message(rows)
    except (AttributeError, TypeError, ValueError, RecursionError):
        return _message([_plain(row) for row in rows])


def unpack(message: bytes) -> list[Result]:
    """The results that were packed.

    Raises:
        ValueError: these bytes hold something else.
    """
    try:
        stop = message.index(b"\n")
        return list(_results(json.loads(message[:stop]), memoryview(message)[stop + 1 :]))
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _row(result: Result) -> object:
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


def _results(rows: list[Any], texts: memoryview) -> Iterator[Result]:
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
            row[_PINS] = tuple([(start, name) for start, name in row[_PINS]])
            yield Document(*row)
