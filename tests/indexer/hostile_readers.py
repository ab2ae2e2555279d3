"""A reading process with harmful formats: each suffix of `HARM` names what happens to the process.

A line of JSON that holds `MARK` and a suffix, for example "word of harm: .loop", does the same.
"""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.readers import Unreadable, jsonl, reader, text
from engine.text.document import Document
from indexer.reading import process as reading_process

MARK = "word of harm: "
_KEPT: list[str] = []


def _loop() -> None:
    for _ in itertools.count():
        pass


def _loop_in_c() -> None:
    sum(itertools.repeat(0))  # holds the lock of the interpreter


def _fill() -> None:
    parts = []
    while True:
        parts.append(bytes(2**20))  # never written, so that a busy machine takes no more processor time


def _sleep() -> None:
    time.sleep(3600)


def _crawl() -> None:
    """Use a tenth of a processor, as on a busy machine."""
    for _ in range(60):
        started = time.process_time()
        while time.process_time() - started < 0.01:
            pass
        time.sleep(0.09)


def _die_once(source: str) -> None:
    """Die of SIGKILL, unless an earlier process did so at this source."""
    mark = Path(source.rpartition(":")[0] if source.rpartition(":")[2].isdigit() else source).with_suffix(".mark")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _count(source: str) -> None:
    """Record the read in a file, and crash."""
    with Path(source).with_suffix(".reads").open("a") as reads:
        reads.write("x")
    _crash()


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _keep() -> None:
    _KEPT.append("x" * 100 * 2**20)


def _raise() -> None:
    raise RecursionError("too deep")


HARM: dict[str, Callable[[], None]] = {
    ".loop": _loop,
    ".cloop": _loop_in_c,
    ".fill": _fill,
    ".sleep": _sleep,
    ".crawl": _crawl,
    ".crash": _crash,
    ".die": _die,
    ".keep": _keep,
    ".raise": _raise,
}
SUFFIXES = (*HARM, ".once", ".count", ".odd")


def _read(data: bytes, doc_id: str, source: str) -> Document:
    suffix = Path(source).suffix
    if suffix == ".once":
        _die_once(source)
    elif suffix == ".count":
        _count(source)
    elif suffix != ".odd":
        HARM[suffix]()
    document = text.read(data, doc_id, source)
    if suffix == ".odd":
        document.metadata["path"] = Path(source)  # type: ignore[index]
    return document


FORMATS = MappingProxyType(dict(reader.FORMATS) | {suffix: reader.Format(suffix, _read) for suffix in SUFFIXES})
_read_line = jsonl._read_line


def _read_harmful_line(line: bytes, place: str, *arguments: Any) -> Iterator[Document | Unreadable]:  # noqa: ANN401
    for suffix, harm in HARM.items():
        if (MARK + suffix).encode() in line:
            harm()
    if (MARK + ".once").encode() in line:
        _die_once(place)
    return _read_line(line, place, *arguments)


def serve(fd: int, begun: int, seconds: float, memory_bytes: int) -> None:
    reader.FORMATS = FORMATS
    jsonl._read_line = _read_harmful_line
    reading_process.serve(fd, begun, seconds, memory_bytes)
