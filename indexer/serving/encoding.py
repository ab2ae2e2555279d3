"""One encoder for all requests: the documents of waiting requests are encoded together, by one thread.

A GPU or a processor encodes the chunks of many requests faster together than one request after the other. Two threads
inside one network would only slow each other down.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.encoders.explanation import ModelExplanation
from engine.errors import EncoderError
from engine.text.document import Document
from engine.work import step
from indexer.serving.progress import Subject, followed_progress

_LOOK_SECONDS = 0.2  # between two looks whether a request still waits for its vectors
MOST_TOKENS = 200_000  # of the documents that are encoded together


class _Job:
    """Documents of one request, and the place for their vectors."""

    def __init__(self, documents: Sequence[SegmentedDocument]) -> None:
        self.documents = list(documents)
        self.n_tokens = sum(document.coverage.tokens_total for document in documents)
        self.encoded: Future[list[EncodedDocument]] = Future()
        self.share: Callable[[], float] = lambda: 0.0  # how much of its batch is encoded, in [0, 1]


class SharedEncoder(Encoder):
    """Encodes for several threads, in the order in which they come, as many requests together as fit."""

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
        if (progress := followed_progress()) is not None:
            progress.expect(Subject.QUERY, sum(document.coverage.tokens_total for document in segmented))
        return self.encode_segmented(segmented)

    def expect(self, n_tokens: int) -> None:
        """Report the number of tokens to encode for candidates."""
        if (progress := followed_progress()) is not None:
            progress.expect(Subject.CANDIDATES, n_tokens)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents that this encoder segmented, and wait for them.

        Raises:
            EncoderError: the server is shutting down.
            Refusal: the client has gone, or the time of the request is over.
        """
        job, progress = _Job(documents), followed_progress()
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
        while not wait([job.encoded], _LOOK_SECONDS).done:
            try:
                step()
            except Exception:
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

    def _encode(self, batch: list[_Job]) -> None:
        """Encode jobs together; where that fails, each alone, so that one request cannot spoil another."""
        documents = [document for job in batch for document in job.documents]
        n_before, n_chunks = self.encoder.n_read, sum(len(document.chunks) for document in documents)

        def share() -> float:
            return min(1.0, (self.encoder.n_read - n_before) / max(1, n_chunks))

        for job in batch:
            job.share = share
        try:
            encoded = iter(self.encoder.encode_segmented(documents))
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the request
            if len(batch) == 1:
                batch[0].encoded.set_exception(error)
                return
            for job in batch:
                self._encode([job])
            return
        self._on_batch(len(batch), len(documents))
        for job in batch:
            job.encoded.set_result([next(encoded) for _ in job.documents])
