"""Requests to read: a file, the rest of a file of many documents, or one line. Reads them, without limits."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from engine.readers import FORMATS, Unreadable, jsonl, read_file
from engine.text.document import Document, without_gz

_BUFFER_BYTES = 2**20
_LONG_LINE_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read, or a line of JSON lines."""

    source: str  # path of the file; with `line`, for people alone
    doc_id: str | None = None  # by default the file name
    line: bytes | None = None  # read instead of the file
    n_skipped: int = 0  # results of a file of JSON lines that are not wanted again
    is_unbatched: bool = False  # whether each result is sent alone


def is_json_lines(source: str) -> bool:
    """Whether a file, by its name, may hold many documents."""
    form = FORMATS.get(PurePath(without_gz(source)).suffix.lower())
    return form is not None and form.read is None


def read_here(request: Request) -> Iterator[Document | Unreadable]:
    """Read a request in this process, without limits of time and memory."""
    return (result for result in results_of(request) if not isinstance(result, int))


def results_of(
    request: Request, before_long_line: Callable[[], None] = lambda: None
) -> Iterator[Document | Unreadable | int]:
    """Read a request.

    Args:
        request: if it skips results of JSON lines, the line number of the last skipped one is yielded first.
        before_long_line: called before a long line of a file of JSON lines is parsed.
    """
    if request.line is not None:
        yield from jsonl.stream(io.BytesIO(request.line), request.source)
    elif is_json_lines(request.source):
        yield from _results_of_lines(request, before_long_line)
    else:
        yield from read_file(Path(request.source), request.doc_id)


class _Lines(io.BufferedReader):
    """A file that announces each long line when it is taken."""

    def __init__(self, file: BinaryIO, before_long_line: Callable[[], None]) -> None:
        super().__init__(cast(io.RawIOBase, file), _BUFFER_BYTES)
        self._before_long_line = before_long_line

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line, or its first `size` bytes."""
        line = super().readline(-1 if size is None else size)
        if len(line) > _LONG_LINE_BYTES:
            self._before_long_line()
        return line


def _results_of_lines(request: Request, before_long_line: Callable[[], None]) -> Iterator[Document | Unreadable | int]:
    source, n_lines = request.source, 0
    try:
        with ExitStack() as files:
            file = cast(BinaryIO, files.enter_context(Path(source).open("rb", buffering=0)))
            if source.lower().endswith(".gz"):
                file = cast(BinaryIO, files.enter_context(gzip.GzipFile(fileobj=file)))
            stream = _Lines(file, before_long_line)
            if request.n_skipped:
                n_lines = _skip_results(stream, request.n_skipped)
                yield n_lines
            for result in jsonl.stream(cast(BinaryIO, stream), source):
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
    while n_results and (part := stream.readline(_LONG_LINE_BYTES)):
        is_blank = not part.strip()
        while not part.endswith(b"\n") and (part := stream.readline(_LONG_LINE_BYTES)):
            is_blank = is_blank and not part.strip()
        n_lines += 1
        n_results -= not is_blank
    return n_lines
