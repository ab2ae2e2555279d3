"""Pins the reference of an index. Encodes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.errors import IndexMismatch
from engine.faults import named_faults
from engine.store.partition_writers import PartitionWriters, open_writers
from engine.store.partitioned import open_snapshot
from engine.store.reference import OUTGROWN, Reference, is_outgrown, sample_order
from engine.store.snapshot import Positions, Snapshot
from engine.store.writer import Writer

FIRST_DOCUMENTS = 100  # most documents of the sample that `later` encodes before the first query
FIRST_TOKENS = 300_000  # most tokens of these documents; half a minute on two cores
FEWEST_FIRST = 20  # fewest of these documents, whatever their tokens
ALL_TOKENS = 600_000  # with at most this number of tokens, all documents are encoded at once


@named_faults
def rebase(path: str | Path, *, log: Callable[[str], None] = lambda _: None) -> Reference:
    """Draw another reference from the documents as they are now, of all partitions. All scores change with it.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
        IndexMismatch: the index is a partition, whose reference is that of all partitions.
    """
    with open_writers(Path(path)) as writer:
        if writer.is_partition:
            whole = writer.folder.parent
            raise IndexMismatch(
                f"{path} is a partition of {whole}, whose reference it shares: longmatch upkeep rebase {whole}"
            )
        with open_snapshot(writer.folder) as snapshot:
            return pin_reference(writer, snapshot, log)


def sample_documents(snapshot: Snapshot) -> Positions:
    """The documents that are encoded first, so that queries have thresholds.

    They are the first documents of the draw: up to `FIRST_DOCUMENTS` documents and `FIRST_TOKENS` tokens, but at least
    `FEWEST_FIRST` documents. Documents that have vectors are left out of the list. A small corpus is encoded whole.
    """
    if snapshot.missing_tokens.sum() <= ALL_TOKENS:
        return np.flatnonzero(~snapshot.has_vectors)
    order = sample_order(snapshot.doc_ids())[:FIRST_DOCUMENTS]
    within = int(np.searchsorted(np.cumsum(snapshot.missing_tokens[order]), FIRST_TOKENS, side="right"))
    first = order[: max(within, FEWEST_FIRST)]
    return first[~snapshot.has_vectors[first]]


def refresh_reference(writer: Writer | PartitionWriters, log: Callable[[str], None]) -> None:
    """Pin a reference where there is none, where documents have outgrown it, or where it lacks vectors it could have.

    A reference that was drawn while documents had no vectors is drawn again once all have them. A partition by
    itself never gets one.
    """
    if writer.is_partition:
        return
    with open_snapshot(writer.folder) as snapshot:
        row, n_documents = snapshot.reference_row, snapshot.n_documents
        has_vectors = snapshot.has_vectors
        first = sample_order(snapshot.doc_ids())[:1]
        is_empty = row is not None and not row.n_documents and bool(has_vectors[first].any())
        is_whole = writer.has_partial_reference and bool(has_vectors.all())
        if not n_documents:
            return
        if row is None:
            pin_reference(writer, snapshot, lambda _: None)
        elif is_empty or is_whole:
            log("drawing the reference again, now from documents with vectors; scores differ from those before")
            pin_reference(writer, snapshot, log)
        elif is_outgrown(row.n_corpus, n_documents):
            log(
                f"{n_documents:,} documents are {OUTGROWN} times the {row.n_corpus:,} that the reference was drawn "
                "from: drawing another one, so scores differ from those before"
            )
            pin_reference(writer, snapshot, log)


def pin_reference(writer: Writer | PartitionWriters, snapshot: Snapshot, log: Callable[[str], None]) -> Reference:
    """Draw a reference from the newest snapshot and pin it, in place of the one before."""
    reference = snapshot.draw_reference(writer.next_reference())
    writer.publish_reference(reference, is_partial=not snapshot.has_vectors.all())
    log(
        f"reference {reference.version}: {reference.n_documents:,} of {reference.n_corpus:,} documents, "
        f"{len(reference.rows):,} chunks"
    )
    return reference
