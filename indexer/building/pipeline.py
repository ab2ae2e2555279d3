"""Read -> compare -> segment -> encode -> commit, resumable at every batch.

Reading, comparing and segmenting run one batch ahead of encoding, in a thread. A batch is committed whole or not at
all; what is committed is never encoded again while it stays the same. Without an encoder documents are committed with
their words alone, and `encode_missing` gives them vectors later.
"""

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias, TypeVar

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.store.catalog import partition_of
from engine.store.checks import content_hash
from engine.store.writer import Indexed, Writer
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.building.corpus import file_of, full_source, is_another_file, is_gone, of_another_file, repeated
from indexer.building.report import Activity, BuildReport
from indexer.reading.reader import OCR_PAGES


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document on its way into the index."""

    document: Document
    segmented: SegmentedDocument | None  # None if it is encoded later
    is_replacement: bool = False  # of a stored version


BATCH_CHARS = 1 << 19  # about 9 s of encoding on two cores; what a kill can cost
LOOKUP_BATCHES = 16  # text of so many batches is compared with the catalog together, and held in memory
_LOOKUP_DOCUMENTS = 64  # looked up in the catalog by one statement, at most
_BLOCK_CHARS = 1 << 25  # read before partitions commit their share, at most; held in memory twice
_BYTES_PER_TOKEN = 4.4  # of text, to estimate the tokens of a document that no encoder has read

Item = TypeVar("Item")
Read: TypeAlias = Document | Unreadable
_Batch: TypeAlias = tuple[list[PreparedDocument], WordTables]  # documents that are committed together, and their terms
StoredBatch: TypeAlias = list[tuple[int, Document]]  # catalog ids and documents that get their vectors together
BatchVectors: TypeAlias = list[EncodedDocument | Unreadable]  # of each document of a batch; a failure has no token
EncodeBatches: TypeAlias = Callable[[Iterator[StoredBatch]], Iterator[tuple[StoredBatch, BatchVectors, float]]]


class Pipeline:
    """One run over a corpus, into a writer; see `run`."""

    def __init__(
        self,
        writer: Writer,
        encoder: Encoder | None,
        *,
        encodes_later: bool = False,
        replace_files: bool = False,
        activity: Activity | None = None,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Bind the run to an open writer.

        Args:
            encoder: that the writer has claimed; None to commit words alone.
            encodes_later: commit new documents without vectors, see `encode_missing`.
            replace_files: whether a file replaces another existing file of the same doc_id; by default it fails.
            activity: shared by the pipelines of a run over several partitions; by default one of its own.
        """
        self.writer = writer
        self.encoder = encoder
        self.activity = activity or Activity(BuildReport())
        self.report = self.activity.report
        self._encodes_later = encodes_later or encoder is None
        self._replace_files = replace_files
        self._log = log
        self._seen: set[int] = set()  # catalog ids of the documents of this run
        self._in_flight: set[str] = set()  # read, but not known to be in the catalog yet
        self._landed: deque[str] = deque()  # committed since the reading thread last checked
        self._failed_before: dict[str, str] = {}  # sources of earlier failures: absolute path -> recorded source
        self._unrecorded: list[tuple[str, str, str]] = []  # failures of the group at hand
        self._well: set[str] = set()  # recorded sources of earlier failures that could be read in this run
        self._moved: list[tuple[str, str]] = []  # earlier file, which is gone, and new file of replaced documents

    def begin(self) -> None:
        """Begin a run, whose documents are passed to `feed` in any number of groups."""
        self.activity.begin()
        self._failed_before = {full_source(source): source for source in self.writer.failed_sources()}

    def feed(self, documents: Iterable[Read]) -> None:
        """Index the new and changed ones among some documents."""
        with closing(ahead(self._batches(documents))) as batches:
            for batch in batches:
                self._encode_and_commit(batch)
                self.activity.take_time()
                self.activity.report_progress()

    def finish(self, *, prune: bool) -> None:
        """End a run: forget repaired failures; with `prune`, remove documents that the run did not read."""
        failed = {failure.source for failure in self.report.failures}
        self.writer.forget_failures(sorted(self._well - failed))
        if self._moved:
            before, now = self._moved[0]
            self._log(
                f"{len(self._moved):,} documents were replaced by files from another place, as the files they came "
                f"from are gone: {before} by {now}"
            )
        if prune:
            self._prune(failed)

    def encode_again(self, documents: Iterable[Document]) -> BuildReport:
        """Commit documents again that are already indexed: with new vectors, or without an encoder with words alone."""
        for group in groups(documents, n_chars, BATCH_CHARS * LOOKUP_BATCHES, _LOOKUP_DOCUMENTS):
            prepared = [self._prepared(document, is_replacement=True) for document in group]
            self._encode_and_commit(self._counted(prepared))
        return self.report

    def encode_missing(self, document_ids: Sequence[int], encode_batches: EncodeBatches | None = None) -> BuildReport:
        """Encode documents that are indexed without vectors.

        Batches are cut and committed in the order of the documents, so a run that continues after a kill cuts the
        same batches. A document without a token is recorded as a failure, and stays without vectors.

        Args:
            encode_batches: makes the vectors in other processes, and the seconds that these took; keeps the order of
                the documents. By default the encoder of the run makes them here.
        """
        started, before = time.perf_counter(), self.report.seconds
        if document_ids:  # for several partitions, the run has set the sum already
            self.activity.n_to_encode = max(self.activity.n_to_encode, self.report.n_encoded + len(document_ids))
        encode = encode_batches or self._encoded_here
        for batch, vectors, seconds in encode(stored_batches(self.writer, document_ids)):
            encoded: dict[int, EncodedDocument] = {}
            documents = []
            for (document_id, document), value in zip(batch, vectors, strict=True):
                if isinstance(value, Unreadable):
                    self._fail(value)
                else:
                    encoded[document_id] = value
                    documents.append(document)
            self._record_failures()
            if encoded:
                ids, rows, words = list(encoded), list(encoded.values()), self.writer.count_words(documents)
                self.report.n_encoded += self.writer.add_vectors(ids, rows, words)
                self.report.encode_seconds += seconds
                self._count(rows)
            self.report.seconds = before + time.perf_counter() - started
            self.activity.report_progress()
        return self.report

    def _encoded_here(self, batches: Iterator[StoredBatch]) -> Iterator[tuple[StoredBatch, BatchVectors, float]]:
        assert self.encoder is not None
        for batch in batches:
            yield batch, encode_batch(batch, self.encoder, self._encode), 0.0

    def _batches(self, documents: Iterable[Read]) -> Iterator[_Batch]:
        for prepared in groups(self._due(documents), lambda due: len(due.document.text), BATCH_CHARS):
            yield self._counted(prepared)

    def _counted(self, prepared: list[PreparedDocument]) -> _Batch:
        return prepared, self.writer.count_words([each.document for each in prepared])

    def _due(self, documents: Iterable[Read]) -> Iterator[PreparedDocument]:
        for document, is_known in self._changed(documents):
            try:
                prepared = self._prepared(document, is_replacement=is_known)
            except DocumentError as error:
                self._fail(Unreadable(document.source or document.doc_id, str(error), document.doc_id))
                continue
            self._in_flight.add(document.doc_id)
            self.activity.n_read += 1
            yield prepared

    def _prepared(self, document: Document, *, is_replacement: bool) -> PreparedDocument:
        """A document cut into chunks unless it is encoded later."""
        if self.encoder is None and not any(character.isalnum() for character in document.text):
            raise DocumentError("no text that has a word; leave the document out")
        segmented = None if self.encoder is None or self._encodes_later else self.encoder.segment(document)
        return PreparedDocument(document, segmented, is_replacement)

    def _changed(self, documents: Iterable[Read]) -> Iterator[tuple[Document, bool]]:
        """The documents that must be indexed, and whether each replaces a stored version."""
        lookup_chars = BATCH_CHARS * LOOKUP_BATCHES
        for group in groups(map(_storable, documents), n_chars, lookup_chars, _LOOKUP_DOCUMENTS):
            while self._landed:
                self._in_flight.discard(self._landed.popleft())
            known = self.writer.indexed([document.doc_id for document in group if isinstance(document, Document)])
            moved: list[tuple[int, Document]] = []
            for document in group:
                if isinstance(document, Unreadable):
                    self._fail(document)
                elif self._is_due(document, there := known.get(document.doc_id), moved):
                    yield document, there is not None
            if moved:
                self.writer.update_metadata(moved)
            self._record_failures()

    def _is_due(self, document: Document, there: Indexed | None, moved: list[tuple[int, Document]]) -> bool:
        """Whether a document must be indexed; `moved` gets it if only its metadata or source have changed."""
        if (source := document.source or document.doc_id) in self._failed_before:
            self._well.add(self._failed_before[source])
        if document.doc_id in self._in_flight or (there is not None and there.id in self._seen):
            self._fail(repeated(document))
            return False
        if there is None:
            return True
        files = [file_of(source, document.doc_id) for source in (there.source, document.source)]
        is_another = is_another_file(*files)
        if there.content_hash != content_hash(document):
            if is_another and not self._replace_files:
                self._fail(of_another_file(document, files[0]))
                return False
            if is_gone(*files):
                self._moved.append((there.source, document.source))
            return True
        self._seen.add(there.id)
        self.report.n_unchanged += 1
        # A copy changes nothing: the document keeps the source and metadata of the first file.
        if not is_another and (dict(there.metadata), there.source) != (dict(document.metadata), document.source):
            moved.append((there.id, document))
        return False

    def _fail(self, unreadable: Unreadable) -> None:
        """Note a failure; the version that the index holds, if any, stays and is not pruned."""
        self.report.failures.append(unreadable)
        self._unrecorded.append((unreadable.source, unreadable.reason, unreadable.doc_id))
        if unreadable.doc_id:
            there = self.writer.indexed([unreadable.doc_id]).get(unreadable.doc_id)
            if there is not None:
                self._seen.add(there.id)

    def _record_failures(self) -> None:
        """Commit the failures of a group together: each commit compares all that were recorded before."""
        if self._unrecorded:
            self.writer.record_failures(self._unrecorded)
            self._unrecorded.clear()

    def _encode_and_commit(self, batch: _Batch) -> None:
        group, words = batch
        documents = [prepared.document for prepared in group]
        encoded = self._vectors(group)
        self._seen.update(self.writer.commit(list(zip(documents, encoded, strict=True)), words))
        self._landed.extend(document.doc_id for document in documents)
        n_replaced = sum(prepared.is_replacement for prepared in group)
        self.report.n_added += len(documents) - n_replaced
        self.report.n_replaced += n_replaced
        self.report.n_encoded += sum(prepared.segmented is not None for prepared in group)
        self._count(encoded)
        for document in documents:
            self.report.doubt(document)
            self.report.n_recognised += OCR_PAGES in document.metadata
            self.report.n_numbered += document.doc_id.endswith(f"#{document.source.rpartition(':')[2]}")
            self.report.n_sections_merged += sum(section.n_merged - 1 for section in document.sections)
            self.report.n_sections_cut += sum(section.n_parts > 1 for section in document.sections)

    def _count(self, encoded: Sequence[EncodedDocument]) -> None:
        self.report.n_tokens += sum(document.coverage.tokens_read for document in encoded)
        self.report.n_chunks += sum(len(document.chunks) for document in encoded)

    def _vectors(self, batch: Sequence[PreparedDocument]) -> list[EncodedDocument]:
        """The vectors of a batch; placeholders without vectors for documents that are encoded later."""
        due = [prepared.segmented for prepared in batch if prepared.segmented is not None]
        encoded = iter(self._encode(due) if due else [])
        return [
            unencoded(each.document, self.writer.width) if each.segmented is None else next(encoded) for each in batch
        ]

    def _encode(self, documents: list[SegmentedDocument]) -> list[EncodedDocument]:
        encoder = self.encoder
        assert encoder is not None
        started, before = time.perf_counter(), encoder.tokens_at_once
        with self.activity.encoding(encoder, documents):
            encoded = encoder.encode_segmented(documents)
        self.report.encode_seconds += time.perf_counter() - started
        if before is None and (now := encoder.tokens_at_once) is not None:
            self._log(f"the GPU has no room for larger batches: going on with {now:,} tokens at once")
        return encoded

    def _prune(self, failed: Set[str]) -> None:
        gone = [
            document_id
            for document_id, source in self.writer.sources()
            # A document may come from a line of a file that failed, or from a folder that could not be listed.
            if document_id not in self._seen
            and failed.isdisjoint((source, source.rpartition(":")[0], *map(str, PurePath(source).parents)))
        ]
        self.writer.remove(gone)
        self.writer.forget_failures(sorted(self.writer.failed_sources() - failed))
        self.report.n_removed += len(gone)


def run(pipelines: Sequence[Pipeline], documents: Iterable[Read], *, prune: bool = False) -> BuildReport:
    """Index what is new or changed; with `prune`, remove what the corpus no longer holds.

    There is a pipeline for each partition, by number; they share one activity. Documents are read one block ahead; a
    block has about a batch for each partition. Documents of the same doc_id always go to the same partition.
    """
    activity = pipelines[0].activity
    for pipeline in pipelines:
        pipeline.begin()
    try:
        if len(pipelines) == 1:
            pipelines[0].feed(documents)
        else:
            block_chars = min(len(pipelines) * BATCH_CHARS, _BLOCK_CHARS)
            with closing(ahead(groups(documents, n_chars, block_chars))) as blocks:
                for block in blocks:
                    _feed(pipelines, block)
        for pipeline in pipelines:
            pipeline.finish(prune=prune)
    finally:
        activity.take_time()
    return activity.report


def _feed(pipelines: Sequence[Pipeline], block: Iterable[Read]) -> None:
    shares: list[list[Read]] = [[] for _ in pipelines]
    for document in block:
        # A file that was never read has no doc_id; its failure stays with its own name.
        name = (document.doc_id or document.source).encode(errors="replace").decode()
        shares[partition_of(name, len(pipelines))].append(document)
    for pipeline, share in zip(pipelines, shares, strict=True):
        if share:
            pipeline.feed(share)


def stored_batches(writer: Writer, document_ids: Sequence[int]) -> Iterator[StoredBatch]:
    """Cut documents of a catalog into batches of about `BATCH_CHARS` characters."""

    def stored() -> Iterator[tuple[int, Document]]:
        for first in range(0, len(document_ids), _LOOKUP_DOCUMENTS):
            ids = list(document_ids[first : first + _LOOKUP_DOCUMENTS])
            yield from zip(ids, writer.documents(ids), strict=True)

    return groups(stored(), lambda row: len(row[1].text), BATCH_CHARS)


def encode_batch(
    batch: StoredBatch, encoder: Encoder, encode: Callable[[list[SegmentedDocument]], list[EncodedDocument]]
) -> BatchVectors:
    """Segment and encode a batch."""
    segmented: list[SegmentedDocument | Unreadable] = []
    for _, document in batch:
        try:
            segmented.append(encoder.segment(document))
        except DocumentError as error:
            segmented.append(Unreadable(document.source or document.doc_id, str(error), document.doc_id))
    due = [value for value in segmented if isinstance(value, SegmentedDocument)]
    encoded = iter(encode(due) if due else [])
    return [value if isinstance(value, Unreadable) else next(encoded) for value in segmented]


def unencoded(document: Document, width: int) -> EncodedDocument:
    """A placeholder without vectors, with an estimate of the tokens that no encoder has read; at least 1."""
    return EncodedDocument.unencoded(width, max(1, round(len(document.text.encode()) / _BYTES_PER_TOKEN)))


def _storable(document: Read) -> Read:
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


def n_chars(document: Read) -> int:
    """Characters that a result of reading holds in memory."""
    return len(document.text if isinstance(document, Document) else document.reason)


def groups(
    items: Iterable[Item], size: Callable[[Item], int], most: int, n_most: int = sys.maxsize
) -> Iterator[list[Item]]:
    """Cut items into lists; one is full when the sizes of its items reach `most`, or with `n_most` items."""
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= most or len(group) == n_most:
            yield group
            group, total = [], 0
    if group:
        yield group


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Draw from an iterator in a thread, one item ahead of the consumer; its errors are raised here."""
    with ThreadPoolExecutor(1, "longmatch-read") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item
