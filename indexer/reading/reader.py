"""Reads documents in a process of their own, so that no document can stop a job or fill the memory of the machine.

One process reads many documents, a batch of small files or one large one ahead of the caller. A document that
exceeds a limit or crashes its parser ends the process: the document becomes `Unreadable` with the reason, and a
new process reads the next one, after those before it whose results were not sent. The process counts in a pipe the
results that it began, so the document is known. A document whose process was killed from outside is read a second time.

With `ReadLimits.ocr`, scanned pages of PDFs are read by the program ocrmypdf, which the caller starts: a copy of the
file with a text layer is read in place of the file.

The process imports the readers alone: no torch, no FAISS.
"""

import gzip
import hashlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass, fields, replace
from itertools import islice
from multiprocessing.connection import Connection, Pipe
from operator import attrgetter
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeAlias, cast

from engine.errors import DocumentError
from engine.readers import FORMATS, Unreadable, read_file
from engine.readers.fields import USUAL, Fields
from engine.readers.reader import GZIP, Results
from engine.text.document import SCANNED_PAGES, Document, without_gz
from engine.text.segmentation import Section

Result: TypeAlias = Document | Unreadable | int  # a number is of a line, or ends the results of a request

_BUFFER_BYTES = 2**20
_PART_BYTES = 2**16  # of a line that is skipped


@dataclass(frozen=True, slots=True)
class ReadRequest:
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


def results_of(request: ReadRequest) -> Iterator[Result]:
    """Read a request; if it skips results of JSON lines, the line number of the last skipped one is yielded first."""
    if request.line is not None:
        from engine.readers import jsonl

        lines = io.BytesIO(request.line)
        yield from jsonl.stream(lines, request.source, request.fields, request.doc_id or "", request.n_skipped)
    elif is_json_lines(request.source):
        yield from _results_of_lines(request)
    else:
        yield from islice(read_file(Path(request.source), request.doc_id, request.fields), request.n_skipped, None)


def _results_of_lines(request: ReadRequest) -> Iterator[Result]:
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
            doc_id = request.doc_id or _file_id(source)
            yield from jsonl.stream(stream, source, request.fields, doc_id, n_lines)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        yield Unreadable(source, f"it is not a whole gzip file ({error}); pack it again", _file_id(source))
    except OSError as error:
        yield Unreadable(source, error.strerror or str(error), _file_id(source))


def _file_id(source: str) -> str:
    return without_gz(PurePath(source).name)


def _skip_results(stream: io.BufferedReader, n_results: int) -> int:
    """Skip `n_results` lines with records, and the lines between them; returns the number of lines.

    Each line is read in parts, so that a long line needs little memory.
    """
    from engine.readers.jsonl import ACTION

    n_lines = 0
    while n_results and (part := stream.readline(_PART_BYTES)):
        is_blank = not part.strip() or ACTION.match(part) is not None
        while not part.endswith(b"\n") and (part := stream.readline(_PART_BYTES)):
            is_blank = is_blank and not part.strip()
        n_lines += 1
        n_results -= not is_blank
    return n_lines


Batch: TypeAlias = list[ReadRequest]

_MOST_FILES = 32
_MOST_BYTES = 2**19  # of the files of a batch; a larger file is a batch of its own


def batches(requests: Iterable[ReadRequest]) -> Iterator[Batch]:
    """The requests in their order; each file of a batch of several holds one document."""
    batch: Batch = []
    n_bytes = 0
    for request in requests:
        size = _bytes_read(request)
        if batch and (len(batch) == _MOST_FILES or n_bytes + size > _MOST_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch.append(request)
        n_bytes += size
    if batch:
        yield batch


def _bytes_read(request: ReadRequest) -> int:
    """Bytes of a file; above `_MOST_BYTES` for a missing file, a line, or a file that can hold many documents."""
    if request.line is not None or is_json_lines(request.source):
        return _MOST_BYTES + 1
    try:
        return Path(request.source).stat().st_size
    except OSError:
        return _MOST_BYTES + 1


def digest_of(data: bytes) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


_of_section = attrgetter(*(field.name for field in fields(Section)))
_ONE_TO_ONE = "latin-1"  # decodes any bytes, and encodes them back


def pack_requests(requests: Iterable[ReadRequest], n_most: int = sys.maxsize) -> bytes:
    """Requests, and the most results of them that are wanted, as bytes."""
    rows = []
    for request in requests:
        line = None if request.line is None else request.line.decode(_ONE_TO_ONE)
        rows.append([request.source, request.doc_id, line, request.n_skipped, astuple(request.fields)])
    return json.dumps([n_most, rows]).encode()


def unpack_requests(message: bytes) -> tuple[list[ReadRequest], int]:
    """The requests that were packed, and their number of results."""
    n_most, rows = json.loads(message)
    return [
        ReadRequest(source, doc_id, None if line is None else line.encode(_ONE_TO_ONE), n_skipped, Fields(*names))
        for source, doc_id, line, n_skipped, names in rows
    ], n_most


def pack(results: Iterable[Result]) -> bytes:
    """Results as JSON; a document that holds anything but plain values becomes `Unreadable`."""
    return b"[%s]" % b",".join(map(_packed, results))


def _packed(result: Result) -> bytes:
    if isinstance(result, int):
        return b"%d" % result
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    try:
        if isinstance(result, Document):
            values |= {"metadata": dict(result.metadata), "sections": list(map(_of_section, result.sections))}
            if not isinstance(result.text, str):
                raise TypeError(f"its text is {type(result.text).__name__}")
        # A parser may leave half a surrogate pair in a text.
        return json.dumps(values, ensure_ascii=False).encode(errors="surrogatepass")
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        return _packed(Unreadable(result.source, f"the parser gave no document ({error})", result.doc_id))


def unpack(message: bytes) -> list[Result]:
    """The results that were packed.

    Raises:
        ValueError: these bytes hold something else.
    """
    try:
        return list(map(_unpacked, json.loads(message)))
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _unpacked(values: Any) -> Result:  # noqa: ANN401
    if isinstance(values, int):
        return values
    if "sections" not in values:
        return Unreadable(**values)
    sections = (Section(heading, tuple(path), *rest) for heading, path, *rest in values["sections"])
    pages, pins = tuple(values["pages"]), tuple(map(tuple, values["pins"]))
    return Document(**values | {"sections": tuple(sections), "pages": pages, "pins": pins})


OUT_OF_MEMORY, FAILED, RETIRED = 81, 82, 83  # exit statuses of the process; retired: it held too much memory
READY = b"ready"  # the first message: the process has started
FILE_END = 0  # among results: those of a request are complete

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
_PIPE_BYTES = 2**16
_N_BATCHES = 2  # batches sent at one time: one that is read, and one ahead
_WALL_FACTOR = 10  # times the limit of processor time that a document can wait without using it, as on a hung disk
_SOON = 0.5  # seconds
_LEAST_BUSY = 0.01  # a process that uses more processor time than this share of the clock is working, not stuck
_FROM_OUTSIDE = frozenset(
    -getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of reading one document, and the languages of its scanned pages."""

    seconds: float = 60.0  # processor time; without progress, ten times as long by the clock
    memory_bytes: int = 2**30  # beyond the program itself; enforced on Linux only
    ocr: str | None = None  # as "eng+deu"; None: no OCR


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
        self._begun: Connection | None = None  # a byte for each result that the process has begun to read
        self._is_ready = False
        self._n_unsent = 0  # results that the process has begun and not sent
        self._of_copies: DocumentReader | None = None  # that OCR has written

    def __enter__(self) -> Self:
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
        if self._of_copies is not None:
            self._of_copies.close()
        if self._connection is not None:
            self._connection.close()
        if self._begun is not None:
            self._begun.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process, self._connection, self._begun = None, None, None
        self._is_ready, self._n_unsent = False, 0

    def read(self, requests: Iterable[ReadRequest]) -> Results:
        """Read documents in their order; the next one is read while the caller works on a result.

        Never raises for a bad document, as `engine.readers.read_file`. One call at a time.

        Raises:
            DocumentError: the process does not start.
        """
        results = self._read(requests)
        return results if self.limits.ocr is None else map(self._recognised, results)

    def _recognised(self, document: Document | Unreadable) -> Document | Unreadable:
        """The document with the text that OCR finds on its scanned pages; with the reason if there is a fault."""
        if isinstance(document, Unreadable):
            pages: Any = range(1, document.n_scanned + 1)
        else:
            pages = document.metadata.get(SCANNED_PAGES)
        if not pages:
            return document
        with TemporaryDirectory(prefix="longmatch-") as folder:
            copy = Path(folder, _file_id(document.source))
            try:
                data = Path(document.source).read_bytes()
                _recognise(gzip.decompress(data) if data.startswith(GZIP) else data, copy, pages, self.limits)
            except (DocumentError, OSError) as error:
                if isinstance(document, Unreadable):
                    return replace(document, reason=str(error))
                return replace(document, metadata={**document.metadata, OCR_FAULT: str(error)})
            self._of_copies = self._of_copies or DocumentReader(replace(self.limits, ocr=None))
            (read,) = self._of_copies.read([ReadRequest(str(copy), document.doc_id)])
        if isinstance(read, Document):
            facts = {OCR_PAGES: len(pages), OCR_LANGUAGE: self.limits.ocr, OCR_DIGEST: digest_of(data)}
            read = replace(read, metadata={**read.metadata, **facts})
        return replace(read, source=document.source)

    def _read(self, requests: Iterable[ReadRequest]) -> Results:
        waiting: deque[Batch] = deque()
        rest = batches(requests)
        try:
            while True:
                for batch in islice(rest, _N_BATCHES - len(waiting)):
                    waiting.append(batch)
                    self._send(batch)
                if not waiting:
                    return
                yield from self._results_of(waiting)
                waiting.popleft()
        finally:
            if waiting:  # the caller takes no more, but the process would send them
                self.close()

    def _results_of(self, waiting: Sequence[Batch]) -> Results:
        """Results of the first waiting batch; a new process continues if one ends."""
        progress = _BatchProgress(waiting[0])
        end: _End | None = None  # of a process, while another one reads the results that it had read and not sent
        n_lost = 0  # such results that are left
        while progress.left:
            answer = self._receive()
            if isinstance(answer, _End):
                end, n_lost = answer, self._n_lost()
                self.close()
            else:
                yield from progress.results(answer)
                n_lost -= _n_results(answer)
            if end is not None and n_lost <= 0:
                yield from progress.failures(end)
                end = None
                for batch in filter(None, (progress.left, *list(waiting)[1:])):
                    self._send(batch)
            elif isinstance(answer, _End):
                self._send(progress.left, n_lost)

    def _n_lost(self) -> int:
        """The number of results that a process which ended had read and not sent."""
        self._count_begun()
        return self._n_unsent - 1

    def _count_begun(self) -> None:
        assert self._begun is not None
        with suppress(BlockingIOError):  # none since the last call
            self._n_unsent += len(os.read(self._begun.fileno(), _PIPE_BYTES))

    def _send(self, batch: Batch, n_most: int = sys.maxsize) -> None:
        if self._connection is None:
            self._start()
        assert self._connection is not None
        with suppress(OSError):  # the process has ended; `_receive` finds out why
            self._connection.send_bytes(pack_requests(batch, n_most))

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

    def _receive(self) -> list[Result] | _End:
        """The next results, or why there are none."""
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
                    self._count_begun()
                    results = unpack(message)
                    self._n_unsent -= _n_results(results)
                    return results
                self._is_ready = message == READY
        except (EOFError, OSError):
            return self._end()
        except ValueError as error:
            return _End(f"the parser gave no document ({error})")

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


OCR_PAGES, OCR_LANGUAGE, OCR_DIGEST, OCR_FAULT = "ocr_pages", "ocr_language", "ocr_file_sha256", "ocr_fault"  # metadata
_OCR = ["ocrmypdf", "--quiet", "--force-ocr", "--rotate-pages", "--output-type=pdf", "--optimize=0"]
_OCR_FACTOR = 3  # times the limit of processor time that a page may take by the clock
_MOST_CHARS = 300  # of the errors of a program


def _recognise(data: bytes, target: Path, pages: Iterable[int], limits: ReadLimits) -> None:
    """Write a copy of a PDF with a text layer on some pages; raises DocumentError if that fails or needs too long."""
    seconds, numbers = _OCR_FACTOR * limits.seconds, list(map(str, pages))
    process = subprocess.Popen(
        [*_OCR, f"-l={limits.ocr}", f"--tesseract-timeout={seconds:g}", f"--pages={','.join(numbers)}", "-", target],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(target.parent)},  # so that its files go with the copy
        process_group=0,
    )
    with process:
        try:
            _, errors = process.communicate(data, seconds * (len(numbers) + 1))
        except subprocess.TimeoutExpired as error:
            raise DocumentError(f"OCR needs more than {seconds:g} s a page; {_more('seconds')}") from error
        finally:
            with suppress(OSError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        reason = " ".join(errors.decode(errors="replace").split())[-_MOST_CHARS:] or f"status {process.returncode}"
        raise DocumentError(f"OCR failed: {reason}; leave the document out")


class _BatchProgress:
    """The requests of a batch whose results are not all there, while processes come and go."""

    def __init__(self, batch: Batch) -> None:
        self.left = list(batch)  # the first one skips the results that are there
        self._failed = ""  # why a line failed, until its number is known
        self._is_retried = False  # whether the next result ended a process that was killed from outside

    def results(self, answer: Iterable[Result]) -> Results:
        """Documents and failures among results."""
        n_done = 0
        for result in answer:
            if not isinstance(result, int):
                n_done, self._is_retried = n_done + 1, False
                yield result
                continue
            if self._failed:
                source = self.left[0].source
                yield Unreadable(source if result == FILE_END else f"{source}:{result}", self._failed)
                self._failed = ""
            if result == FILE_END:
                self.left, n_done, self._is_retried = self.left[1:], 0, False
        self._skip(n_done)

    def failures(self, end: _End) -> Results:
        """The failure of the next result, unless it is read again; that of a line follows when its number is known."""
        if end.has_retired or not self.left:
            return
        request = self.left[0]
        if end.was_killed and not self._is_retried:
            self._is_retried = True
        elif _has_lines(request) and not self._failed:
            self._failed = end.reason
            self._skip(1)
        else:
            yield Unreadable(request.source, self._failed or end.reason, _doc_id(request))
            self.left, self._failed = self.left[1:], ""

    def _skip(self, n_results: int) -> None:
        if n_results:
            self.left[0] = replace(self.left[0], n_skipped=self.left[0].n_skipped + n_results)


def _n_results(answer: Iterable[Result]) -> int:
    """The number of results, without line numbers."""
    return sum(not isinstance(result, int) or result == FILE_END for result in answer)


def _has_lines(request: ReadRequest) -> bool:
    return request.line is None and is_json_lines(request.source)


def _doc_id(request: ReadRequest) -> str:
    if request.line is not None or is_json_lines(request.source):
        return ""
    return request.doc_id or _file_id(request.source)


def _more(what: str) -> str:
    return f"leave the document out, or allow more with --read-{what}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MiB"


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
