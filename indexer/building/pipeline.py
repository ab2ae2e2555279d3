"""Read -> compare -> segment -> encode -> commit, resumable at every batch.

Reading, comparing and segmenting run one batch ahead of encoding, in a thread. A
batch is committed whole or not at all; what is committed is never encoded again
while it stays the same. Without an encoder documents are committed with their words
alone, and `encode_missing` gives them vectors later.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.store.documents import content_hash
from engine.store.writer import Indexed, Writer
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.building.doc_ids import Seen, full_source, is_another_file, is_gone, of_another_file, repeated
from indexer.building.report import Activity, BuildReport
from indexer.building.reuse import ChangedDocument, Reuse, encode_changes
from indexer.building.stored import (
    LOOKUP_DOCUMENTS,
    EncodeBatches,
    EncodedBatch,
    StoredBatch,
    encode_batch,
    stored_batches,
)
from indexer.generation.resources import DiskGuard, commit_bytes

BATCH_CHARS = 1 << 19  # about 9 s of encoding on two cores; what a kill can cost
LOOKUP_CHARS = 1 << 23  # text of the documents that are compared with the catalog together, held in memory
BYTES_PER_TOKEN = 4.4  # of text, to estimate the tokens of a document that no encoder has read

Prepared: TypeAlias = Document | SegmentedDocument | ChangedDocument  # a `Document` waits for its vectors
Read = TypeVar("Read", bound=Document | Unreadable)
StoreVectors: TypeAlias = Callable[[Sequence[int], Sequence[EncodedDocument], WordTables], int]


@dataclass(frozen=True, slots=True)
class BatchSizes:
    """How much is held in memory at one time, in characters."""

    batch_chars: int  # encoded and committed together
    lookup_chars: int  # compared with the catalog together


@dataclass(frozen=True, slots=True)
class _Pending:
    """A batch that waits to be encoded, or to be committed with its words alone."""

    documents: list[Document]
    prepared: list[Prepared]  # the documents, segmented where they are encoded now
    words: WordTables  # term counts of the documents
    n_replaced: int


class Pipeline:
    """One run over a corpus, into a writer."""

    def __init__(
        self,
        writer: Writer,
        encoder: Encoder | None,
        *,
        sizes: BatchSizes | None = None,
        disk: DiskGuard | None = None,
        replace_files: bool = False,
        reuse: Reuse | None = None,
        activity: Activity | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Bind the run to an open writer and a loaded encoder.

        Args:
            encoder: that the writer has claimed; None to commit words alone.
            sizes: of batches; `BATCH_CHARS` and `LOOKUP_CHARS` by default.
            replace_files: whether a file replaces another existing file of the same doc_id; by default it fails.
            reuse: finds chunks of changed documents that have vectors; by default all are encoded.
            activity: shared by the pipelines of a run over several partitions; by default one of its own.
        """
        self.writer = writer
        self.encoder = encoder
        self.activity = activity or Activity(BuildReport())
        self.report = self.activity.report
        self.sizes = sizes or BatchSizes(BATCH_CHARS, LOOKUP_CHARS)
        self._disk = disk or DiskGuard(writer.folder)
        self._replace_files = replace_files
        self._reuse = reuse
        self._log = log
        self._seen = Seen()
        self._in_flight: set[str] = set()  # read, but not known to be in the catalog yet
        self._landed: deque[str] = deque()  # committed since the reading thread last checked
        self._failed_before: dict[str, str] = {}  # sources of earlier failures: absolute path -> recorded source
        self._well: set[str] = set()  # recorded sources of earlier failures that could be read in this run
        self._moved: tuple[str, str] | None = None  # first document whose earlier file is gone: old and new source
        self._n_moved = 0

    def run(self, documents: Iterable[Document | Unreadable], *, prune: bool = False) -> BuildReport:
        """Index what is new or changed; with `prune`, remove what the corpus no longer holds."""
        self.begin()
        try:
            self.feed(documents)
            self.finish(prune=prune)
        finally:
            self.activity.take_time()
        return self.report

    def begin(self) -> None:
        """Begin a run, whose documents are passed to `feed` in any number of groups."""
        self.activity.begin()
        self._failed_before = {full_source(source): source for source in self.writer.failed_sources()}

    def feed(self, documents: Iterable[Document | Unreadable]) -> None:
        """Index the new and changed ones among some documents."""
        with closing(ahead(self._batches(documents))) as batches:
            for pending in batches:
                self._encode_and_commit(pending)
                self.activity.take_time()
                self.activity.report_progress()

    def finish(self, *, prune: bool) -> None:
        """End a run: forget repaired failures; with `prune`, remove documents that the run did not read."""
        self.writer.forget_failures(sorted(self._well.difference(failure.source for failure in self.report.failures)))
        self._report_moved()
        if prune:
            self._prune()

    def encode_again(self, documents: Iterable[Document]) -> BuildReport:
        """Commit documents again that are already indexed: with new vectors, or without an encoder with words alone."""
        for group in _groups(documents, self.sizes.lookup_chars):
            batch = [self._prepared(document) for document in group]
            self._encode_and_commit(self._pending(batch, len(group)))
        return self.report

    def encode_missing(self, document_ids: Sequence[int], store: StoreVectors | None = None) -> BuildReport:
        """Encode documents that are indexed without vectors; see `each_encoded`."""
        for _ in self.each_encoded(document_ids, self._encoded_here, store):
            pass
        return self.report

    def each_encoded(
        self, document_ids: Sequence[int], encode_batches: EncodeBatches, store: StoreVectors | None = None
    ) -> Iterator[BuildReport]:
        """Encode documents that are indexed without vectors, and yield the report after each commit.

        Batches are cut and committed in the order of the documents, so a run that continues after a kill cuts the
        same batches. A document without a token is recorded as a failure, and stays without vectors.

        Args:
            encode_batches: makes the vectors, in this process or others; keeps the order of the batches.
            store: takes ids, vectors and term counts of a batch, and returns the number of documents that it stored; by
                default `Writer.add_vectors`.
        """
        add = store or self.writer.add_vectors
        started, before = time.perf_counter(), self.report.seconds
        if document_ids:  # for several partitions, the run has set the sum already
            self.activity.n_to_encode = max(self.activity.n_to_encode, self.report.n_encoded + len(document_ids))
        stored = stored_batches(self.writer, document_ids, self.sizes.batch_chars)
        for batch, made in encode_batches(stored):
            for failure in made.failures:
                self._fail(failure)
            if made.encoded:
                words = self.writer.count_words([batch.documents[place] for place in made.places])
                kept = [batch.ids[place] for place in made.places]
                with self._disk.room_for(commit_bytes([], made.encoded, words), f"vectors of {len(kept):,} documents"):
                    self.report.n_encoded += add(kept, made.encoded, words)
                self.report.encode_seconds += made.seconds
                self._count(made.encoded)
            self.report.seconds = before + time.perf_counter() - started
            self.activity.report_progress()
            yield self.report

    def _encoded_here(self, batches: Iterator[StoredBatch]) -> Iterator[tuple[StoredBatch, EncodedBatch]]:
        assert self.encoder is not None
        for batch in batches:
            yield batch, encode_batch(batch, self.encoder.segment, self._encode)

    def _batches(self, documents: Iterable[Document | Unreadable]) -> Iterator[_Pending]:
        batch: list[Prepared] = []
        n_replaced = n_chars = 0
        for document, known in self._changed(documents):
            try:
                prepared = self._prepared(document, known)
            except DocumentError as error:
                self._fail(Unreadable(document.source or document.doc_id, str(error), document.doc_id))
                continue
            self._in_flight.add(document.doc_id)
            self.activity.n_read += 1
            batch.append(prepared)
            n_replaced += known is not None
            n_chars += len(document.text)
            if n_chars >= self.sizes.batch_chars:
                yield self._pending(batch, n_replaced)
                batch, n_replaced, n_chars = [], 0, 0
        if batch:
            yield self._pending(batch, n_replaced)

    def _prepared(self, document: Document, known: Indexed | None = None) -> Prepared:
        """A document cut into chunks, with stored vectors from `known`; the document itself if it is encoded later."""
        if self.encoder is None and not any(character.isalnum() for character in document.text):
            raise DocumentError("no text that has a word; leave the document out")
        prepared = document if self.encoder is None else self.encoder.segment(document)
        if self._reuse is None or known is None:
            return prepared
        return self._reuse.find(prepared, known.id) or prepared

    def _pending(self, batch: list[Prepared], n_replaced: int) -> _Pending:
        documents = [document if isinstance(document, Document) else document.document for document in batch]
        return _Pending(documents, batch, self.writer.count_words(documents), n_replaced)

    def _changed(self, documents: Iterable[Document | Unreadable]) -> Iterator[tuple[Document, Indexed | None]]:
        """The documents that must be indexed, each with its entry in the index, if any."""
        for group in _groups(map(_storable, documents), self.sizes.lookup_chars):
            while self._landed:
                self._in_flight.discard(self._landed.popleft())
            known = self.writer.indexed([document.doc_id for document in group if isinstance(document, Document)])
            moved: list[tuple[int, Document]] = []
            for document in group:
                if isinstance(document, Unreadable):
                    self._fail(document)
                elif self._is_due(document, there := known.get(document.doc_id), moved):
                    yield document, there
            if moved:
                self.writer.update_metadata(moved)

    def _is_due(self, document: Document, there: Indexed | None, moved: list[tuple[int, Document]]) -> bool:
        """Whether a document must be indexed.

        Args:
            there: its entry in the index, if any.
            moved: gets the document if only its metadata or source have changed.
        """
        if (source := document.source or document.doc_id) in self._failed_before:
            self._well.add(self._failed_before[source])
        if document.doc_id in self._in_flight or (there is not None and there.id in self._seen):
            self._fail(repeated(document))
            return False
        if there is None:
            return True
        is_another = is_another_file(there.source, document.source)
        if there.content_hash != content_hash(document):
            if is_another and not self._replace_files:
                self._fail(of_another_file(document, there.source))
                return False
            self._take_note(document, there)
            return True
        self._seen.add(there.id)
        self.report.n_unchanged += 1
        # A copy changes nothing: the document keeps the source and metadata of the first file.
        if not is_another and (dict(there.metadata), there.source) != (dict(document.metadata), document.source):
            moved.append((there.id, document))
        return False

    def _take_note(self, document: Document, there: Indexed) -> None:
        """Count a document that replaces one whose file is gone, so that the run reports it."""
        if is_gone(there.source, document.source):
            self._moved = self._moved or (there.source, document.source)
            self._n_moved += 1

    def _report_moved(self) -> None:
        if self._moved is not None:
            before, now = self._moved
            self._log(
                f"{self._n_moved:,} documents were replaced by files from another place, as the files they came "
                f"from are gone: {before} by {now}"
            )

    def _fail(self, unreadable: Unreadable) -> None:
        """Record a failure; the version that the index holds, if any, stays and is not pruned."""
        self.report.failures.append(unreadable)
        self.writer.record_failure(unreadable.source, unreadable.reason, unreadable.doc_id)
        if unreadable.doc_id:
            there = self.writer.indexed([unreadable.doc_id]).get(unreadable.doc_id)
            if there is not None:
                self._seen.add(there.id)

    def _encode_and_commit(self, pending: _Pending) -> None:
        documents = pending.documents
        encoded = self._vectors(pending.prepared)
        with self._disk.room_for(
            commit_bytes(documents, encoded, pending.words), f"a batch of {len(documents):,} documents"
        ):
            ids = self.writer.commit(list(zip(documents, encoded, strict=True)), pending.words)
        for document_id in ids:
            self._seen.add(document_id)
        self._landed.extend(document.doc_id for document in documents)
        self.report.n_added += len(documents) - pending.n_replaced
        self.report.n_replaced += pending.n_replaced
        self._count(encoded)
        for changed in pending.prepared:
            if isinstance(changed, ChangedDocument):
                self.report.n_chunks_reused += len(changed.places)
                self.report.n_tokens -= changed.n_tokens_reused
        for document in documents:
            self.report.doubt(document)
            self.report.n_sections_merged += sum(section.n_merged - 1 for section in document.sections)
            self.report.n_sections_cut += sum(section.n_parts > 1 for section in document.sections)

    def _count(self, encoded: list[EncodedDocument]) -> None:
        self.report.n_tokens += sum(document.coverage.tokens_read for document in encoded)
        self.report.n_chunks += sum(len(one.chunks) for one in encoded)

    def _vectors(self, prepared: list[Prepared]) -> list[EncodedDocument]:
        """The vectors of a batch; placeholders without vectors for documents that are encoded later."""
        due = [document for document in prepared if not isinstance(document, Document)]
        encoded = iter(encode_changes(self._used, due, self._encode) if due else [])
        self.report.n_encoded += len(due)
        width = self.writer.width
        return [
            EncodedDocument.unencoded(width, estimated_tokens(document))
            if isinstance(document, Document)
            else next(encoded)
            for document in prepared
        ]

    @property
    def _used(self) -> Encoder:
        encoder = self.encoder if self._reuse is None else self._reuse.encoder
        assert encoder is not None
        return encoder

    def _encode(self, documents: list[SegmentedDocument]) -> list[EncodedDocument]:
        encoder = self._used
        started, before = time.perf_counter(), encoder.tokens_at_once
        with self.activity.encoding(encoder, documents):
            encoded = encoder.encode_segmented(documents)
        self.report.encode_seconds += time.perf_counter() - started
        if before is None and (now := encoder.tokens_at_once) is not None:
            self._log(f"the GPU has no room for larger batches: going on with {now:,} tokens at once")
        return encoded

    def _prune(self) -> None:
        failed = frozenset(failure.source for failure in self.report.failures)
        gone = [
            document_id
            for document_id, source in self.writer.sources()
            if document_id not in self._seen and not _is_of(source, failed)
        ]
        self.writer.remove(gone)
        self.writer.keep_failures([failure.source for failure in self.report.failures])
        self.report.n_removed += len(gone)


def estimated_tokens(document: Document) -> int:
    """Estimated tokens of a document that no encoder has read; at least 1."""
    return max(1, round(len(document.text.encode()) / BYTES_PER_TOKEN))


def _is_of(source: str, files: frozenset[str]) -> bool:
    """Whether a document came from one of the files, or from a line of one."""
    return source in files or source.rpartition(":")[0] in files


def _storable(document: Document | Unreadable) -> Document | Unreadable:
    """The document, or a failure if UTF-8 or JSON cannot write it, so that it does not end the run."""
    if isinstance(document, Unreadable):
        return document
    headings = [part for section in document.sections for part in (section.heading, *section.path)]
    try:
        metadata = json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
        for part in (document.doc_id, document.title, document.source, document.text, metadata, *headings):
            part.encode()
    except (ValueError, TypeError) as error:
        doc_id, source = (part.encode(errors="replace").decode() for part in (document.doc_id, document.source))
        return Unreadable(source or doc_id, f"it cannot be stored ({error}); clean it", doc_id)
    return document


def _groups(documents: Iterable[Read], most_chars: int) -> Iterator[list[Read]]:
    group: list[Read] = []
    n_chars = 0
    for document in documents:
        group.append(document)
        n_chars += len(document.text) if isinstance(document, Document) else 0
        if len(group) >= LOOKUP_DOCUMENTS or n_chars >= most_chars:
            yield group
            group, n_chars = [], 0
    if group:
        yield group


Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Draw from an iterator in a thread, one item ahead of the consumer; its errors are raised here."""
    waiting: queue.Queue[Callable[[], Item] | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def offer(result: Callable[[], Item] | None) -> None:
        while not stopped.is_set():
            try:
                waiting.put(result, timeout=0.1)
                return
            except queue.Full:
                continue

    def draw() -> None:
        try:
            for item in items:
                offer(lambda item=item: item)  # type: ignore[misc]
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            offer(lambda error=error: _raise(error))  # type: ignore[misc]
        else:
            offer(None)

    thread = threading.Thread(target=draw, name="longmatch-read", daemon=True)
    thread.start()
    try:
        while (result := waiting.get()) is not None:
            yield result()
    finally:
        stopped.set()
        thread.join()


def _raise(error: BaseException) -> NoReturn:
    raise error
