"""The process that reads documents for `indexer.reading.reader`: sets its own limits, and ends when one is exceeded.

Processor time is limited by a timer of the system that kills the process, so a loop in C is ended like one in
Python. Memory is limited by the system too (Linux alone): an allocation beyond the limit fails.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import threading
import time
import traceback
from functools import cache
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from engine.readers import text  # noqa: F401 - most documents need it; loaded before limits apply
from engine.text.document import Document
from indexer.reading.reader import (
    FAILED,
    FILE_END,
    OUT_OF_MEMORY,
    READY,
    RETIRED,
    Batch,
    Result,
    is_json_lines,
    pack,
    results_of,
    unpack_requests,
)

_STATM = Path("/proc/self/statm")  # Linux alone
_PAGE_BYTES = resource.getpagesize()
_KEPT_SHARE = 8  # a process that still holds 1/8 of the limit after a document is replaced
_BATCH_RESULTS, _BATCH_CHARS, _BATCH_SECONDS = 64, 2**18, 0.05
_LEAST_KEPT = 64 * 2**20  # memory a process can always keep, since parsers load tables once


def serve(fd: int, begun: int, seconds: float, memory_bytes: int) -> None:
    """Read requested documents until the caller closes its end; never returns."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    gc.freeze()  # the modules stay, so no search for garbage needs to pass through them
    connection = Connection(fd)
    batches: SimpleQueue[tuple[Batch, int]] = SimpleQueue()
    memory = _Memory(memory_bytes)
    threading.Thread(target=_take, args=(connection, batches), daemon=True).start()
    try:
        connection.send_bytes(READY)
        while True:
            _answer(_Results(connection), begun, *batches.get(), seconds, memory)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except OSError:  # the caller is gone
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a fault of a reader; the caller records it and goes on
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(FAILED)


def _take(connection: Connection, batches: SimpleQueue[tuple[Batch, int]]) -> None:
    """Receive requests while a document is read; end the process when the caller has ended for any reason.

    C code that does not release the interpreter lock delays the end, at most until the time limit.
    """
    try:
        while True:
            batches.put(unpack_requests(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _answer(waiting: _Results, begun: int, requests: Batch, n_most: int, seconds: float, memory: _Memory) -> None:
    """Read results up to a number, and send them.

    A byte goes to `begun` before each result, so that a fault can be placed; the line number after skipping is none.
    """
    for request in requests:
        results = chain(results_of(request), [FILE_END])
        # Skipping takes time in proportion to the file, so it has no limit.
        is_skipping = request.n_skipped > 0 and request.line is None and is_json_lines(request.source)
        result: Result | None = None
        while result != FILE_END and n_most > 0:
            if not is_skipping:
                os.write(begun, b".")
                n_most -= 1
            if not waiting.results:
                memory.limit()
            # The default action of SIGPROF ends the process, also while C code runs.
            signal.setitimer(signal.ITIMER_PROF, 0 if is_skipping else seconds)
            result = next(results)
            waiting.add(result)
            if is_skipping and isinstance(result, int):
                waiting.send()  # before a result that may end this process
            elif is_skipping:  # the file cannot be read as far as before
                os.write(begun, b".")
                n_most -= 1
            is_skipping = False
        if memory.is_too_much():
            waiting.send()
            os._exit(RETIRED)
    signal.setitimer(signal.ITIMER_PROF, 0)
    waiting.send()


class _Results:
    """Results to send to the caller; small results are sent together, since each message costs time."""

    def __init__(self, connection: Connection) -> None:
        self.results: list[Result] = []
        self._connection = connection
        self._n_chars = 0
        self._started = 0.0

    def add(self, result: Result) -> None:
        """Take a result, and send all when they are many, large or old."""
        if not self.results:
            self._started = time.monotonic()
        self.results.append(result)
        self._n_chars += len(result.text) if isinstance(result, Document) else 0
        is_old = time.monotonic() - self._started > _BATCH_SECONDS
        if is_old or len(self.results) >= _BATCH_RESULTS or self._n_chars >= _BATCH_CHARS:
            self.send()

    def send(self) -> None:
        """Send the results, if there are any."""
        if self.results:
            self._connection.send_bytes(pack(self.results))
        self.results, self._n_chars = [], 0


class _Memory:
    """The private memory of this process."""

    def __init__(self, limit_bytes: int) -> None:
        """Count the memory that is held now as the program."""
        self._limit = limit_bytes
        self._most_kept = _data_bytes() + max(_LEAST_KEPT, limit_bytes // _KEPT_SHARE)

    def limit(self) -> None:
        """Allow the next document the full limit."""
        held = _data_bytes()
        if held:
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            soft = min(held, self._most_kept) + self._limit
            resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))

    def is_too_much(self) -> bool:
        """Whether documents that were read left too much behind."""
        return _data_bytes() > self._most_kept


@cache
def _statm() -> int | None:
    """The descriptor of `/proc/self/statm`, which stays open; None on systems without it."""
    return os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC) if _STATM.exists() else None


def _data_bytes() -> int:
    """Allocated private memory in bytes; 0 on systems that do not report it."""
    fd = _statm()
    return 0 if fd is None else int(os.pread(fd, 256, 0).split()[5]) * _PAGE_BYTES
