"""Reads documents in a process of their own, so that no document can stop a job or fill the memory of the machine.

One process reads many documents, a batch of small files or one large one ahead of the caller. A document that
exceeds a limit or crashes its parser ends the process: the document becomes `Unreadable` with the reason, and a
new process reads the next one, and those before it in a batch whose results were not sent. A document whose
process was killed from outside is read a second time.

The process imports the readers alone: no torch, no FAISS. On systems other than POSIX documents are read in
the process of the caller, without limits.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection, Pipe
from pathlib import Path, PurePath
from typing import Self, TypeAlias

from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.text.document import Document, without_gz
from indexer.reading.requests import (
    Batch,
    Request,
    batches,
    ends_answer,
    is_json_lines,
    pack_requests,
    read_here,
    unpack,
)

OUT_OF_MEMORY, FAILED, RETIRED = 81, 82, 83  # exit statuses of the process; retired: it held too much memory
READY, ALL_SENT, END = b"ready", b"all", b""  # messages: it has started; no result waits; a batch is answered

FILE_END = 0  # among the results of a batch of files: those of a file are complete

_MODULE = "indexer.reading.process"
# Ctrl-C ends the process without a traceback. With the caller's search path it finds the same packages.
_START = """\
import gc, importlib, signal, sys
gc.set_threshold(10_000)  # new containers between two garbage collections
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
module, fd, begun, seconds, memory_bytes, *sys.path[:] = sys.argv[1:]
importlib.import_module(module).serve(int(fd), int(begun), float(seconds), int(memory_bytes))
"""
_N_BATCHES = 2  # batches sent at one time: one that is read, and one ahead
_WALL_FACTOR = 10  # times the limit of processor time that a document can wait without using it, as on a hung disk
_SOON = 0.5  # seconds
_LEAST_BUSY = 0.01  # a process that uses more processor time than this share of the clock is working, not stuck
_FROM_OUTSIDE = frozenset(
    -getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)

Results: TypeAlias = Iterator[Document | Unreadable]


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of reading one document."""

    seconds: float = 60.0  # processor time; without progress, ten times as long by the clock
    memory_bytes: int = 2**30  # beyond the program itself; enforced on Linux only


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a process: the reason, and the consequence for the document it was reading."""

    reason: str
    was_killed: bool = False  # from outside, so that the document may be sound
    has_retired: bool = False  # between two documents


class DocumentReader:
    """Reads documents in another process, each within limits; a context manager that starts the process at once."""

    def __init__(self, limits: ReadLimits | None = None) -> None:
        """Set the limits of one document; the process starts with `with` or with the first document."""
        self.limits = limits or ReadLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._begun: Connection | None = None  # a byte for each file of a batch that the process has begun to read
        self._is_ready = False

    def __enter__(self) -> Self:
        if _has_processes():
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The id of the process; None where there is none at this time."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process; the next document starts a new one."""
        if self._connection is not None:
            self._connection.close()
        if self._begun is not None:
            self._begun.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process, self._connection, self._begun, self._is_ready = None, None, None, False

    def read(self, requests: Iterable[Request]) -> Results:
        """Read documents in their order; the next one is read while the caller works on a result.

        Never raises for a bad document, as `engine.readers.read_file`. One call at a time.

        Raises:
            DocumentError: the process does not start.
        """
        if not _has_processes():
            for request in requests:
                yield from read_here(request)
            return
        waiting: deque[Batch | Unreadable] = deque()
        rest = batches(requests)
        try:
            while True:
                for batch in islice(rest, max(0, _N_BATCHES - len(waiting))):
                    waiting.append(batch)
                    self._send(batch)
                if not waiting:
                    return
                first = waiting[0]
                if isinstance(first, Unreadable):
                    yield first
                    waiting.popleft()
                elif len(first) == 1:
                    yield from self._results_of_one(first[0], waiting)
                else:
                    yield from self._results_of_files(first, waiting)
        finally:
            if waiting:  # the caller takes no more, but the process would send them
                self.close()

    def _results_of_one(self, request: Request, waiting: deque[Batch | Unreadable]) -> Results:
        """Results of the first waiting request; a new process continues if one ends."""
        progress, others = _Progress(request), list(waiting)[1:]
        while (answer := self._receive()) != END:
            if isinstance(answer, bytes):
                yield from progress.results(answer)
                if ends_answer(answer):
                    break
            elif (failure := progress.failure(answer)) is not None:
                yield failure
                self._restart(others)
                break
            else:
                self._restart([[progress.request], *others])
        waiting.popleft()

    def _results_of_files(self, files: Batch, waiting: deque[Batch | Unreadable]) -> Results:
        """Results of the first waiting batch; if the process ends, the other files wait again."""
        n_results = 0
        while (answer := self._receive()) != END:
            results = _unpacked(answer) if isinstance(answer, bytes) else None
            if results is None:
                n_begun = self._n_begun(len(files)) - n_results
                waiting.popleft()
                waiting.extendleft(reversed(_after_end(files[n_results:], n_begun, answer)))
                self._restart(waiting)
                return
            n_results += results.count(FILE_END)
            yield from (result for result in results if not isinstance(result, int))
            if isinstance(answer, bytes) and ends_answer(answer):
                break
        self._n_begun(len(files))
        waiting.popleft()

    def _n_begun(self, n_files: int) -> int:
        """The number of files that the process began to read since the last call; called once for each batch."""
        assert self._begun is not None
        with suppress(BlockingIOError):  # no file, and the process still runs
            return len(os.read(self._begun.fileno(), n_files))
        return 0

    def _restart(self, waiting: Iterable[Batch | Unreadable]) -> None:
        self.close()
        for batch in waiting:
            if not isinstance(batch, Unreadable):
                self._send(batch)

    def _send(self, batch: Batch) -> None:
        if self._connection is None:
            self._start()
        assert self._connection is not None
        with suppress(OSError):  # the process has ended; `_receive` finds out why
            self._connection.send_bytes(pack_requests(batch))

    def _start(self) -> None:
        """Start the process; does not wait for it."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        begun, begins = Pipe(duplex=False)
        os.set_blocking(begun.fileno(), False)
        fds = [theirs.fileno(), begins.fileno()]
        settings = [_MODULE, *map(str, [*fds, self.limits.seconds, self.limits.memory_bytes])]
        with theirs, begins:
            self._connection, self._begun = Connection(ours.detach()), begun
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _START, *settings, *map(str, sys.path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # parsers may print
                    pass_fds=fds,
                )
            except OSError as error:
                self.close()
                raise DocumentError(f"no process to read documents can be started ({error}); end others") from error

    def _receive(self) -> bytes | _End:
        """The next message, or why there is none."""
        if self._connection is None:  # the request before ended it
            self._start()
        connection = self._connection
        assert connection is not None
        arrivals = select.poll()
        arrivals.register(connection.fileno(), select.POLLIN)
        try:
            while True:
                if not self._arrives(arrivals):
                    return _End(f"no answer within {_WALL_FACTOR * self.limits.seconds:g} s; {_more('seconds')}")
                message = connection.recv_bytes()
                if self._is_ready:
                    return message
                self._is_ready = message == READY
        except (EOFError, OSError):
            return self._end()

    def _arrives(self, arrivals: select.poll) -> bool:
        """Wait for a message; False if the process has neither sent one nor used processor time for too long."""
        seconds = _WALL_FACTOR * self.limits.seconds
        # Most messages arrive soon; the processor time is read only for the others.
        soon = min(_SOON, seconds / 10)
        if arrivals.poll(1000 * soon):
            return True
        spent = self._processor_seconds()
        while not arrivals.poll(1000 * (seconds - soon)):
            before, spent = spent, self._processor_seconds()
            # On a busy machine the process waits for its turn; the limit of processor time ends it.
            if spent - before <= _LEAST_BUSY * seconds:
                return False
        return True

    def _processor_seconds(self) -> float:
        """Processor time that the process has used; 0 on systems that do not report it."""
        if self._process is None:
            return 0.0
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it has ended, or this is no Linux
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _end(self) -> _End:
        """Why the process ended."""
        assert self._process is not None
        status, had_started = self._process.wait(), self._is_ready
        if status == -signal.SIGINT:
            raise KeyboardInterrupt
        if status >= 0 and not had_started:
            raise DocumentError(f"the process that reads documents did not start (exit status {status}); see above")
        if status == -signal.SIGPROF:
            return _End(f"reading needs more than {self.limits.seconds:g} s of processor time; {_more('seconds')}")
        if status == OUT_OF_MEMORY:
            return _End(f"reading needs more than {_size(self.limits.memory_bytes)} of memory; {_more('memory')}")
        if status in _FROM_OUTSIDE:
            name = signal.Signals(-status).name
            return _End(f"the process that read it was killed twice ({name}); is the memory full?", was_killed=True)
        if status < 0:
            return _End(
                f"the parser crashed ({_signal_name(-status)}): the file is damaged, or needs more than "
                f"{_size(self.limits.memory_bytes)} of memory (--read-memory)"
            )
        reason = f"the reader failed (exit status {status}); the file may be damaged"
        return _End(reason, has_retired=status == RETIRED)


def _has_processes() -> bool:
    return os.name == "posix" and bool(sys.executable)


class _Progress:
    """The progress of reading one request.

    Small results of JSON lines are sent in batches, so the last results of a process that ended may be lost. The next
    process then sends each result alone, until the line that ends it is known.
    """

    def __init__(self, request: Request) -> None:
        """Start at the beginning of a request."""
        self.request = request  # for the next process
        self._has_lines = request.line is None and is_json_lines(request.source)
        self._n_results = 0
        self._is_exact = not self._has_lines  # whether the next result is certainly the one that is being read
        self._was_killed = False  # the process, from outside, while the next result was read
        self._failed = ""  # why a line failed, until its number is known

    def results(self, message: bytes) -> Results:
        """Results in a message."""
        self._is_exact = message == ALL_SENT or self.request.is_unbatched or not self._has_lines
        for result in [] if message == ALL_SENT else _loaded(message, self.request):
            if not isinstance(result, int):
                self._n_results, self._was_killed = self._n_results + 1, False
                yield result
            elif self._failed:
                yield Unreadable(f"{self.request.source}:{result}", self._failed)
                self._failed = ""

    def failure(self, end: _End) -> Unreadable | None:
        """The failure of the request after the end of a process, or None to read `request` again."""
        is_unbatched = self.request.is_unbatched
        if end.was_killed and not self._was_killed:
            self._was_killed = True
        elif not self._is_exact:
            is_unbatched = True
        elif not end.has_retired:
            if self._failed or not self._has_lines:
                return Unreadable(self.request.source, self._failed or end.reason, _doc_id(self.request))
            self._n_results, self._failed, is_unbatched = self._n_results + 1, end.reason, False
        self.request = replace(self.request, n_skipped=self._n_results, is_unbatched=is_unbatched)
        self._is_exact = is_unbatched or not self._has_lines
        return None


def _after_end(files: Batch, n_begun: int, answer: bytes | _End) -> list[Batch | Unreadable]:
    """Batches to read again, and failures, from the files without a result after the end of their process."""
    if isinstance(answer, _End) and answer.has_retired:
        return [files]
    if isinstance(answer, bytes) or n_begun < 1:
        return [[file] for file in files]  # any of them may be the cause
    file = files[n_begun - 1]
    last = [file] if answer.was_killed else Unreadable(file.source, answer.reason, _doc_id(file))
    return [part for part in (files[: n_begun - 1], last, files[n_begun:]) if part]


def _unpacked(message: bytes) -> list[Document | Unreadable | int] | None:
    """The results in a message about a batch of files; None where it is something else."""
    with suppress(ValueError):
        return unpack(message) or None
    return None


def _loaded(message: bytes, request: Request) -> list[Document | Unreadable | int]:
    """Results, and where some were skipped, the line number of the last one skipped."""
    try:
        return unpack(message)
    except ValueError as error:
        return [Unreadable(request.source, f"the parser gave no document ({error})", _doc_id(request))]


def _doc_id(request: Request) -> str:
    if request.line is not None or is_json_lines(request.source):
        return ""
    return request.doc_id or without_gz(PurePath(request.source).name)


def _more(what: str) -> str:
    return f"leave the document out, or allow more with --read-{what}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MiB"


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
