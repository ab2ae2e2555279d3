"""Copies an index into another number of partitions, and without its vectors for another encoder.

Encodes nothing, and reads no file of a corpus. Vectors, term counts, texts and the reference are copied unchanged, so
scores stay the same to the last digit. A new folder is written beside its final place and appears there by one rename,
complete or not at all.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch, RecallTooLow, named_faults
from engine.store.catalog import partition_of
from engine.store.durable import appearing
from engine.store.partitioned import Snapshot, open_snapshot, stored_failures
from engine.store.snapshot import Positions
from engine.store.writer import PartitionWriters, Writer, open_writers
from engine.text.document import Document
from indexer.building.builder import check_number, is_free, write_empty
from indexer.building.pipeline import unencoded
from indexer.generation import generations
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import AUTO

_CHUNKS_AT_ONCE = 16_384  # copied into one shard; 25 MB at width 384
_DOCUMENTS_AT_ONCE = 1_024


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """The partitions that were made."""

    n_documents: tuple[int, ...]  # of each partition
    n_chunks: tuple[int, ...]


@named_faults
def partition(
    path: str | Path,
    out: str | Path,
    n_partitions: int,
    *,
    words_alone: bool = False,
    log: Callable[[str], None] = lambda _: None,
) -> PartitionReport:
    """Copy an index into another number of partitions.

    Args:
        out: folder of the new index, empty or not existing.
        words_alone: copy no vectors, so that another encoder can make them.

    Raises:
        QueryError: the number is out of range.
        IndexMismatch: there is no index, or `out` is not empty.
        IndexDamaged: a shard is damaged; repair first.
        BudgetExceeded: the disk is full; nothing is left of the copy.
    """
    source, out = Path(path), Path(out)
    check_number(n_partitions)
    if not is_free(out):
        raise IndexMismatch(f"{out} is there already; name a new folder")
    with open_snapshot(source) as snapshot, appearing(out) as folder:
        if n_partitions > 1:
            assert snapshot.language is not None
            write_empty(folder, n_partitions, snapshot.language, _encoder(snapshot, words_alone))
        with open_writers(folder) as writers:
            return _copied(snapshot, writers, source, words_alone, log)


def _copied(
    snapshot: Snapshot,
    target: PartitionWriters | Writer,
    source: Path,
    words_alone: bool,
    log: Callable[[str], None],
) -> PartitionReport:
    writers = target.parts
    owners = np.array([partition_of(doc_id, len(writers)) for doc_id in snapshot.doc_ids()], np.int64)
    assert snapshot.language is not None
    target.set_language(snapshot.language)
    if (encoder := _encoder(snapshot, words_alone)) is not None:
        target.claim(encoder)
    for number, writer in enumerate(writers):
        positions = np.flatnonzero(owners == number)
        log(f"partition {number}: copying {len(positions):,} documents")
        for block in _blocks(snapshot, positions):
            writer.commit(list(_stored(snapshot, block, words_alone)), snapshot.words(block, apart=True))
    doc_ids = dict(stored_failures(source))
    for failed, reason in snapshot.failures():
        doc_id = doc_ids.get(failed, "")
        writers[partition_of(doc_id or failed, len(writers))].record_failures([(failed, reason, doc_id)])
    if words_alone:
        refresh_reference(target, log)
    elif snapshot.reference_row is not None:
        target.publish_reference(snapshot.reference, is_partial=snapshot.has_partial_reference)
    for writer in writers:
        try:
            generations.derive(writer, AUTO, log=log)
        except RecallTooLow as error:
            log(f"{writer.folder.name}: no generation was published, queries scan all vectors ({error})")
            generations.refresh_word_postings(writer)
    counts = np.zeros_like(owners) if words_alone else snapshot.locations.n_chunks
    n_chunks = [int(counts[owners == number].sum()) for number in range(len(writers))]
    return PartitionReport(tuple(np.bincount(owners, minlength=len(writers)).tolist()), tuple(n_chunks))


def _encoder(snapshot: Snapshot, words_alone: bool) -> Mapping[str, Any] | None:
    return None if words_alone else snapshot.meta.get("encoder")


def _blocks(snapshot: Snapshot, positions: Positions) -> Iterator[Positions]:
    """Runs of documents that are copied together."""
    for run in snapshot.runs(positions, _CHUNKS_AT_ONCE):
        for first in range(0, len(run), _DOCUMENTS_AT_ONCE):
            yield run[first : first + _DOCUMENTS_AT_ONCE]


def _stored(snapshot: Snapshot, positions: Positions, words_alone: bool) -> Iterator[tuple[Document, EncodedDocument]]:
    for position, (document, coverage) in zip(positions.tolist(), snapshot.documents(positions), strict=True):
        yield document, unencoded(document, 0) if words_alone else snapshot.encoded(position, coverage)
