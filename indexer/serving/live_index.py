"""The index that is served, the one encoder of all its requests, and how far each search has come.

The index follows its commits: a request keeps the snapshot that it started with, and the next one is opened and warmed
beside the old one. Documents of waiting requests are encoded together, by one thread, because two threads inside one
network would only slow each other down.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.encoders.encoder import EncodedDocument, Encoder, ModelExplanation, SegmentedDocument
from engine.errors import EncoderError, EngineError, limited, step
from engine.index import Index
from engine.search.request import Request
from engine.store.partitioned import Snapshot, open_snapshot
from engine.text.document import Document
from indexer.searches import SearchLog
from indexer.serving.answers import LOG, Refusal, too_busy
from indexer.serving.settings import ServerSettings
from indexer.serving.work import elsewhere


class Stage(StrEnum):
    """The current stage of a search."""

    WAITING = "waiting"  # for a thread
    READING = "reading"  # the file or text
    ENCODING = "encoding"
    SEARCHING = "searching"
    ARRANGING = "arranging"  # texts, marks and maps of the hits


class Subject(StrEnum):
    """The documents that are encoded."""

    QUERY = "query"
    CANDIDATES = "candidates"  # documents of the index that have no vectors yet


@dataclass(frozen=True, slots=True)
class State:
    """How far a search has come at one moment."""

    stage: Stage
    subject: Subject | None = None  # of the encoding
    tokens_done: int = 0
    tokens_total: int = 0  # approximate where documents of the index are encoded


class Progress:
    """The progress of one search, and the pieces of its result that are ready to be shown."""

    def __init__(self) -> None:
        self.pieces: deque[bytes] = deque()  # of the result, for the client
        self._stage = Stage.WAITING
        self._subject: Subject | None = None
        self._n_before = self._n_total = self._n_running = 0  # tokens: encoded, expected, being encoded
        self._share: Callable[[], float] = lambda: 0.0
        self._is_abandoned = False

    @property
    def state(self) -> State:
        """The current state."""
        if self._stage is not Stage.ENCODING:
            return State(self._stage)
        done = self._n_before + int(self._n_running * self._share())
        return State(self._stage, self._subject, min(done, self._n_total), self._n_total)

    def enter(self, stage: Stage) -> None:
        """Begin another stage.

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._stage = stage

    def expect(self, subject: Subject, n_tokens: int) -> None:
        """Begin to encode `n_tokens` tokens, in any number of steps.

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._subject, self._n_before, self._n_total = subject, 0, n_tokens
        self._stage = Stage.ENCODING

    @contextmanager
    def encoding(self, n_tokens: int, share: Callable[[], float]) -> Iterator[None]:
        """Follow one step of encoding; the search begins when all expected tokens are encoded.

        Args:
            share: returns the encoded share of the step, in [0, 1].

        Raises:
            Refusal: the client has gone.
        """
        self._check()
        self._share, self._n_running = share, n_tokens
        try:
            yield
        finally:
            self._n_running = 0
            self._n_before += n_tokens
        if self._n_before >= self._n_total:
            self._stage = Stage.SEARCHING

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the work of this thread; encoders report to the progress that their thread follows."""
        token = _FOLLOWED.set(self)
        try:
            yield
        finally:
            _FOLLOWED.reset(token)

    def abandon(self) -> None:
        """End the search at its next step: nobody waits for it."""
        self._is_abandoned = True

    def _check(self) -> None:
        if self._is_abandoned:
            raise Refusal(499, "disconnected", "the client closed the connection", "send the request again")


# The progress that a thread follows; None where nobody waits for one.
_FOLLOWED: ContextVar[Progress | None] = ContextVar("progress", default=None)


_LOOK_SECONDS = 0.2  # between two looks whether a request still waits for its vectors
MOST_TOKENS = 200_000  # of the documents that are encoded together
_SHORTER = 8  # times as short as what is being encoded, or more: encoded between two of its steps


class _Job:
    """Documents of one request, and the place for their vectors."""

    def __init__(self, documents: Sequence[SegmentedDocument]) -> None:
        self.documents = list(documents)
        self.n_tokens = sum(document.coverage.tokens_total for document in documents)
        self.is_wanted = True  # whether its request still waits
        self.encoded: Future[list[EncodedDocument]] = Future()
        self.share: Callable[[], float] = lambda: 0.0  # how much of its batch is encoded, in [0, 1]


class SharedEncoder(Encoder):
    """Encodes for several threads, in the order in which they come, as many requests together as fit.

    Between two steps of the encoder, requests that are much shorter than what it encodes come first, and what no
    request waits for any more ends.
    """

    takes_threads = True

    def __init__(
        self, encoder: Encoder, on_batch: Callable[[int, int], None] = lambda _requests, _documents: None
    ) -> None:
        """Start the thread; `close` ends it.

        Args:
            encoder: used by that thread alone, apart from segmentation and explanations.
            on_batch: called after each batch with its requests and its documents.
        """
        self.encoder = encoder
        self.name, self.width, self.device = encoder.name, encoder.width, encoder.device
        self._on_batch = on_batch
        self._waiting: deque[_Job] = deque()
        self._arrival = threading.Condition()
        self._is_closed = False
        self._segmentation = threading.Lock()  # tokenizers refuse two threads at a time
        threading.Thread(target=self._work, name="encoder", daemon=True).start()

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder."""
        return self.encoder.fingerprint

    @property
    def cannot_explain(self) -> str | None:
        """See `Encoder.cannot_explain`."""
        return self.encoder.cannot_explain

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        """See `Encoder.explain`; one request at a time."""
        with self._segmentation:
            return self.encoder.explain(query, targets)

    def save_pretrained(self, folder: Path) -> None:
        """Write the encoder."""
        self.encoder.save_pretrained(folder)

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into chunks."""
        with self._segmentation:
            return self.encoder.segment(document)

    def encode(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Encode queries."""
        segmented = [self.segment(document) for document in documents]
        if (progress := _FOLLOWED.get()) is not None:
            progress.expect(Subject.QUERY, sum(document.coverage.tokens_total for document in segmented))
        return self.encode_segmented(segmented)

    def expect(self, n_tokens: int) -> None:
        """Report the number of tokens to encode for candidates."""
        if (progress := _FOLLOWED.get()) is not None:
            progress.expect(Subject.CANDIDATES, n_tokens)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents that this encoder segmented, and wait for them.

        Raises:
            EncoderError: the server is shutting down.
            Refusal: the client has gone, or the time of the request is over.
        """
        job, progress = _Job(documents), _FOLLOWED.get()
        if progress is None:
            return self._encoded(job)
        with progress.encoding(job.n_tokens, lambda: job.share()):
            return self._encoded(job)

    def _encoded(self, job: _Job) -> list[EncodedDocument]:
        with self._arrival:
            if self._is_closed:
                raise EncoderError("the server is shutting down; send the request again later")
            self._waiting.append(job)
            self._arrival.notify()
        with elsewhere():
            while not wait([job.encoded], _LOOK_SECONDS).done:
                try:
                    step()
                except Exception:
                    job.is_wanted = False
                    with self._arrival, suppress(ValueError):
                        self._waiting.remove(job)
                    raise
        return job.encoded.result()

    def close(self) -> None:
        """End the thread once it has encoded the waiting jobs."""
        with self._arrival:
            self._is_closed = True
            self._arrival.notify()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._encode(batch)

    def _next_batch(self) -> list[_Job]:
        """The jobs that wait, up to the limit, the oldest first; none once the encoder is closed."""
        batch: list[_Job] = []
        n_tokens = 0
        with self._arrival:
            self._arrival.wait_for(lambda: self._waiting or self._is_closed)
            while self._waiting and (not batch or n_tokens + self._waiting[0].n_tokens <= MOST_TOKENS):
                n_tokens += self._waiting[0].n_tokens
                batch.append(self._waiting.popleft())
        return batch

    def _between_steps(self, batch: list[_Job]) -> int:
        """Encode the jobs that wait and are much shorter than those of a batch; return how many sequences that were.

        Raises:
            EncoderError: no request waits for the batch any more.
        """
        if not any(job.is_wanted for job in batch):
            raise EncoderError("no request waits for these documents any more")
        n_tokens, n_before = sum(job.n_tokens for job in batch), self.encoder.n_read
        with self._arrival:
            short = [job for job in self._waiting if _SHORTER * job.n_tokens <= n_tokens]
            for job in short:
                self._waiting.remove(job)
        if short:
            self._encode(short)
        return self.encoder.n_read - n_before

    def _encode(self, batch: list[_Job]) -> None:
        """Encode jobs together; where that fails, each alone, so that one request cannot spoil another."""
        documents = [document for job in batch for document in job.documents]
        n_before, n_chunks = self.encoder.n_read, sum(len(document.chunks) for document in documents)

        def between_steps(_n_bytes: int) -> None:
            nonlocal n_before
            n_before += self._between_steps(batch)

        def share() -> float:
            return min(1.0, (self.encoder.n_read - n_before) / max(1, n_chunks))

        for job in batch:
            job.share = share
        try:
            with limited(between_steps):
                encoded = iter(self.encoder.encode_segmented(documents))
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the request
            if len(batch) == 1:
                batch[0].encoded.set_exception(error)
                return
            for job in batch:
                if job.is_wanted:
                    self._encode([job])
            return
        self._on_batch(len(batch), len(documents))
        for job in batch:
            job.encoded.set_result([next(encoded) for _ in job.documents])


_WARM_UP = Document.from_text("Which documents match this one, and in which sections?")


class LiveIndex:
    """Opens an index, and opens it again when something was committed."""

    def __init__(
        self,
        folder: Path,
        settings: ServerSettings,
        encoder: Encoder | None = None,
        on_batch: Callable[[int, int], None] = lambda _requests, _documents: None,
    ) -> None:
        """Check that there is an index; `load` opens it.

        Args:
            settings: device, and whether vectors are stored.
            on_batch: as in `SharedEncoder`.

        Raises:
            EngineError: the index cannot be opened.
        """
        self.folder = folder
        self.n_documents = 0
        self.n_loaded = 0  # how often the index was opened
        self._settings = settings
        self._encoder = encoder
        self._on_batch = on_batch
        self._shared: SharedEncoder | None = None
        self._opened: _Opened | None = None
        open_snapshot(folder).close()

    @property
    def is_ready(self) -> bool:
        """Whether a query finds everything loaded."""
        return self._opened is not None

    def load(self) -> None:
        """Load the encoder and open the index.

        Raises:
            EngineError: the encoder or the index cannot be loaded.
        """
        settings, snapshot = self._settings, open_snapshot(self.folder)
        try:
            shared = self._shared_encoder(snapshot)
            index = Index(snapshot, shared, store=settings.store, log=LOG.info, placement=settings.placement)
            index.search(_WARM_UP, Request(k=1, candidates=0)).to_dict()
        except EngineError:
            snapshot.close()
            raise
        if settings.log_file is not None:
            index.record = SearchLog(settings.log_file).add
        before, self._opened = self._opened, _Opened(index)
        self._shared, self.n_documents = shared, index.n_documents
        self.n_loaded += 1
        if before is not None:
            before.leave()

    def _shared_encoder(self, snapshot: Snapshot) -> SharedEncoder | None:
        """The loaded encoder; a new one if the index was rebuilt with another encoder, None for words alone."""
        if not snapshot.width:
            return None
        built = snapshot.meta["encoder"]
        if self._shared is not None and self._shared.encoder.fingerprint == built["fingerprint"]:
            return self._shared
        from engine.encoders.loading import load_encoder  # an index without vectors needs no encoder

        encoder = self._encoder or load_encoder(built["name"], device=self._settings.device)
        return SharedEncoder(encoder, self._on_batch)

    def reload(self) -> bool:
        """Open the index again if something was committed; where that fails, the old snapshot stays."""
        before = self._shared
        try:
            with self.lease() as index:
                if index.snapshot.is_newest():
                    return False
            self.load()
        except EngineError as error:
            LOG.warning("the index has changed and cannot be opened; the old snapshot stays: %s", error)
            return False
        if before is not None and before is not self._shared:
            before.close()
        LOG.info("the index has changed: %s documents", f"{self.n_documents:,}")
        return True

    @contextmanager
    def lease(self) -> Iterator[Index]:
        """The opened index, which stays open until the caller is done with it.

        Raises:
            Refusal: the index is not loaded yet.
        """
        while (opened := self._opened) is not None:
            if opened.enter():
                try:
                    yield opened.index
                finally:
                    opened.leave()
                return
        raise too_busy("the index is being loaded")

    def close(self) -> None:
        """Close the index and the encoder."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.leave()
        if self._shared is not None:
            self._shared.close()


class _Opened:
    """One opened index, which is closed when its last user leaves; the first user is the server."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._n_users = 1
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Begin to use the index, unless it is closed."""
        with self._lock:
            self._n_users += self._n_users > 0
            return self._n_users > 0

    def leave(self) -> None:
        """End to use the index."""
        with self._lock:
            self._n_users -= 1
            is_last = not self._n_users
        if is_last:
            self.index.close()
