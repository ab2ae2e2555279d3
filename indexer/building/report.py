"""Counters of an indexing run, what it does between two commits, and its progress callbacks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.readers import Unreadable
from engine.readers.left_out import SCANS, UNEXPLAINED
from engine.text.document import LEFT_OUT, Document
from indexer.reading.reader import OCR_FAULT, OCR_PAGES

_SHARE_UNEXPLAINED = 0.005  # of the words of a file
_TIMES_METADATA = 10  # as many characters as the text has
_LEAST_METADATA = 500  # characters


@dataclass(frozen=True, slots=True)
class Doubt:
    """A document that was read, but perhaps not whole."""

    source: str
    reason: str


@dataclass
class BuildReport:
    """What a run did; counts rows that are on disk."""

    n_added: int = 0
    n_replaced: int = 0
    n_unchanged: int = 0
    n_removed: int = 0
    n_encoded: int = 0  # documents that got vectors
    n_tokens: int = 0  # encoded in this run
    n_chunks: int = 0
    n_sections_merged: int = 0  # tiny headed parts that went into a neighbour
    n_sections_cut: int = 0  # pieces of huge sections
    encode_seconds: float = 0.0
    seconds: float = 0.0  # reading, encoding and storing
    generation_seconds: float = 0.0
    disk_bytes: int = 0  # of the index folder afterwards; 0 if not measured
    n_recognised: int = 0  # documents with pages that were read by OCR
    n_numbered: int = 0  # records without an id, named by their place in a file
    n_missing: int = 0  # documents of the index that have no vectors afterwards
    tokens_missing: int = 0  # tokens of those documents, estimated
    failures: list[Unreadable] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)

    def doubt(self, document: Document) -> None:
        """Note a document that lost words without a reason, or scanned pages, or that is nearly all metadata."""
        n_scanned = 0 if OCR_PAGES in document.metadata else document.left_out.get(SCANS, 0)
        n_lost = document.left_out.get(UNEXPLAINED, 0)
        sizes = {
            name: sum(len(item) for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
            for name, value in document.metadata.items()
            if not name.startswith(LEFT_OUT)
        }
        if n_lost and n_lost > _SHARE_UNEXPLAINED * (n_lost + len(document.text.split())):
            words = "1 word" if n_lost == 1 else f"{n_lost:,} words"
            reason = f"{words} of the file are neither read nor left out for a reason; this is a fault of the reader"
        elif n_scanned:
            pages = "1 page has" if n_scanned == 1 else f"{n_scanned:,} pages have"
            fault = document.metadata.get(OCR_FAULT, "to recognise it in pictures: --ocr")
            reason = f"{pages} hardly any text that can be read; {fault}"
        elif sum(sizes.values()) > max(_LEAST_METADATA, _TIMES_METADATA * len(document.text)):
            longest = max(sizes, key=lambda name: sizes[name])
            reason = f'nearly all of it is metadata; to read its longest field as the text: --text-field "{longest}"'
        else:
            return
        self.doubts.append(Doubt(document.source or document.doc_id, reason))

    @property
    def n_seen(self) -> int:
        """Documents read, the failed ones included."""
        return self.n_added + self.n_replaced + self.n_unchanged + len(self.failures)


# Called after each commit; `begin`, if it has that, is called with the activity, which changes until the run ends.
Progress: TypeAlias = Callable[[BuildReport], None]


class Activity:
    """The state of a run, which changes while the run goes on; another thread can read it."""

    def __init__(self, report: BuildReport, progress: Progress | None = None) -> None:
        """Track a run whose report counts committed documents; `progress` is called after each commit."""
        self.report = report
        self._progress = progress
        self._started = time.perf_counter()
        self.n_read = 0  # documents that were read and are new or changed
        self.n_to_encode = 0  # documents that the run encodes once all are indexed; 0 before
        # Encoder, documents and chunks of the batch, and chunks that the encoder had read before.
        self._batch: tuple[Encoder, int, int, int] | None = None

    def begin(self) -> None:
        """Reading begins now."""
        self._started = time.perf_counter()
        begin: Callable[[Activity], None] | None = getattr(self._progress, "begin", None)
        if begin is not None:
            begin(self)

    def report_progress(self) -> None:
        """Call the progress after a commit."""
        if self._progress is not None:
            self._progress(self.report)

    def take_time(self) -> None:
        """Note in the report how long the run takes so far."""
        self.report.seconds = time.perf_counter() - self._started

    @contextmanager
    def encoding(self, encoder: Encoder, documents: Sequence[SegmentedDocument]) -> Iterator[None]:
        """Track a batch that is encoded inside the context."""
        n_chunks = sum(len(document.chunks) for document in documents)
        self._batch = encoder, len(documents), n_chunks, encoder.n_read
        try:
            yield
        finally:
            self._batch = None

    @property
    def n_being_encoded(self) -> float:
        """Documents of the batch at hand that are encoded, by the share of its chunks."""
        batch = self._batch  # another thread may end the batch meanwhile
        if batch is None:
            return 0.0
        encoder, n_documents, n_chunks, n_before = batch
        return n_documents * min(1.0, (encoder.n_read - n_before) / max(1, n_chunks))
