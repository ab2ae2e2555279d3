"""One encoder for all requests: what waits is encoded together, by one thread.

A GPU or a processor encodes many chunks faster together than one request after the other, and two threads inside
one network would only slow each other down.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from engine.document import Document
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import EncoderError

MOST_TOKENS = 200_000  # of the documents that are encoded together


class _Job:
    """Documents of one request, and the place for their vectors."""

    def __init__(self, documents: Sequence[SegmentedDocument]) -> None:
        self.documents = list(documents)
        self.encoded: Future[list[EncodedDocument]] = Future()

    @property
    def n_tokens(self) -> int:
        return sum(one.coverage.tokens_total for one in self.documents)


class SharedEncoder:
    """Encodes for several threads, in the order in which they come, as many requests together as fit."""

    def __init__(
        self, encoder: Encoder, on_batch: Callable[[int, int], None] = lambda _requests, _documents: None
    ) -> None:
        """Start the thread; `close` ends it.

        Args:
            encoder: used by that thread alone, apart from segmentation.
            on_batch: called after each batch with its requests and its documents.
        """
        self.encoder = encoder
        self._on_batch = on_batch
        self._waiting: deque[_Job] = deque()
        self._arrival = threading.Condition()
        self._is_closed = False
        self._segmentation = threading.Lock()  # tokenizers refuse two threads at a time
        threading.Thread(target=self._work, name="encoder", daemon=True).start()

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into chunks."""
        with self._segmentation:
            return self.encoder.segment(document)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents, and wait for them.

        Raises:
            EncoderError: the server is shutting down.
        """
        job = _Job(documents)
        with self._arrival:
            if self._is_closed:
                raise EncoderError("the server is shutting down; send the request again later")
            self._waiting.append(job)
            self._arrival.notify()
        return job.encoded.result()

    def close(self) -> None:
        """End the thread once it has encoded what waits."""
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
        try:
            encoded = iter(self.encoder.encode_segmented([one for job in batch for one in job.documents]))
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the request
            if len(batch) == 1:
                batch[0].encoded.set_exception(error)
                return
            for job in batch:
                self._encode([job])
            return
        self._on_batch(len(batch), sum(len(job.documents) for job in batch))
        for job in batch:
            job.encoded.set_result([next(encoded) for _ in job.documents])


class RequestEncoder(Encoder):
    """The shared encoder as one opened index sees it; reports which documents of the index it encoded."""

    def __init__(self, shared: SharedEncoder, on_indexed: Callable[[str, EncodedDocument], None]) -> None:
        """Stand in for the encoder of the index.

        Args:
            shared: does the work.
            on_indexed: called with doc_id and vectors of each document of the index that was encoded for a query.
        """
        self._shared = shared
        self._on_indexed = on_indexed
        self.name = shared.encoder.name
        self.width = shared.encoder.width
        self.device = shared.encoder.device

    @property
    def fingerprint(self) -> str:
        """That of the shared encoder."""
        return self._shared.encoder.fingerprint

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document as the shared encoder does."""
        return self._shared.segment(document)

    def encode(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Encode queries."""
        return self._shared.encode_segmented([self.segment(one) for one in documents])

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents of the index."""
        encoded = self._shared.encode_segmented(documents)
        for one, vectors in zip(documents, encoded, strict=True):
            self._on_indexed(one.document.doc_id, vectors)
        return encoded

    def save_pretrained(self, folder: Path) -> None:
        """Write the shared encoder."""
        self._shared.encoder.save_pretrained(folder)
