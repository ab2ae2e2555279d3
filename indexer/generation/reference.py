"""Pins the reference of an index, and adds words to an index that an earlier version wrote. Encodes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from sqlalchemy import select

from engine.errors import IndexMismatch
from engine.faults import named_faults
from engine.store.catalog import ShardRow
from engine.store.partition_writers import PartitionWriters, open_writers
from engine.store.partitioned import open_snapshot
from engine.store.reference import OUTGROWN, Reference, is_outgrown, sample_order
from engine.store.snapshot import Positions, Snapshot
from engine.store.writer import Replacement, Writer
from engine.words.counts import count_documents
from engine.words.languages import check_language, detect_language
from engine.words.segmenter import segmenter_of
from indexer.generation.compaction import live_members, live_shard

FIRST_DOCUMENTS = 100  # of the sample, encoded before the first query of an index that encodes later
FIRST_TOKENS = 300_000  # or those that have so many tokens, half a minute on two cores
FEWEST_FIRST = 20  # or at least so many
ALL_TOKENS = 600_000  # up to which all documents are encoded at once
_LANGUAGE_DOCUMENTS = 64  # whose texts decide on the language of an index


@named_faults
def rebase(path: str | Path, *, log: Callable[[str], None] = lambda _: None) -> Reference:
    """Draw another reference from the documents as they are now, of all partitions. All scores change with it.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
        IndexMismatch: the index is a partition, whose reference is that of all partitions.
    """
    with open_writers(Path(path)) as writer:
        if isinstance(writer, Writer) and writer.is_partition:
            whole = writer.folder.parent
            raise IndexMismatch(
                f"{path} is a partition of {whole}, whose reference it shares: longmatch rebase {whole}"
            )
        return pin_reference(writer, log)


def sample_documents(snapshot: Snapshot) -> Positions:
    """The documents that are encoded first, so that queries have thresholds.

    They are the first of the draw, `FIRST_DOCUMENTS` of them or as many as have `FIRST_TOKENS`, at least
    `FEWEST_FIRST`; those that have vectors are left out of the list. Of a small corpus they are all.
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
    if isinstance(writer, Writer) and writer.is_partition:
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
        pin_reference(writer, lambda _: None)
    elif is_empty or is_whole:
        log("drawing the reference again, now from documents with vectors; scores differ from those before")
        pin_reference(writer, log)
    elif is_outgrown(row.n_corpus, n_documents):
        log(
            f"{n_documents:,} documents are {OUTGROWN} times the {row.n_corpus:,} that the reference was drawn from: "
            "drawing another one, so scores differ from those before"
        )
        pin_reference(writer, log)


def pin_reference(writer: Writer | PartitionWriters, log: Callable[[str], None]) -> Reference:
    """Draw a reference and pin it, in place of the one before."""
    with open_snapshot(writer.folder) as snapshot:
        reference = snapshot.draw_reference(writer.next_reference())
        writer.publish_reference(reference, is_partial=not snapshot.has_vectors.all())
    log(
        f"reference {reference.version}: {reference.n_documents:,} of {reference.n_corpus:,} documents, "
        f"{len(reference.rows):,} chunks"
    )
    return reference


def upgrade_words(writer: Writer, language: str | None, log: Callable[[str], None]) -> None:
    """Add term counts, from the stored text, to the shards of an index that an earlier version wrote.

    Each shard is committed by itself, so that a run that was stopped goes on where it was;
    words count once all shards have them.

    Args:
        writer: holds the index.
        language: by which words are segmented; by default detected in the text.
        log: called with one line a step.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
        QueryError: there is no such language.
    """
    if not writer.lacks_words:
        return
    if language is not None:
        check_language(language)
    with writer.read() as connection:
        numbers = list(connection.execute(select(ShardRow.id).order_by(ShardRow.id)).scalars())
    with Snapshot(writer.folder) as snapshot:
        first = np.arange(min(_LANGUAGE_DOCUMENTS, snapshot.n_documents))
        language = language or detect_language(document.text for document, _ in snapshot.documents(first))
        lacking = [number for number in numbers if snapshot.shard(number).words is None]
        if lacking:
            log(f"adding words to {len(lacking):,} shards of an earlier version (language {language})")
        for number in lacking:
            writer.replace_shards(_counted(snapshot, number, language, titles=False))
    writer.set_language(language)


def upgrade_titles(writer: Writer, log: Callable[[str], None]) -> None:
    """Count the terms of titles more often in an index that an earlier version wrote, from the stored text.

    All shards change in one transaction, so that no reader meets both kinds of counts. The reference goes with
    them, so that another one is drawn.

    Args:
        writer: holds the index.
        log: called with one line before the counting.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
    """
    language = writer.language
    if language is None or writer.counts_titles:
        return
    with writer.read() as connection:
        numbers = list(connection.execute(select(ShardRow.id).order_by(ShardRow.id)).scalars())
    if numbers:
        log(f"counting words of titles in {len(numbers):,} shards of an earlier version: scores change with it")
    with Snapshot(writer.folder) as snapshot:
        writer.recount_words(_counted(snapshot, number, language, titles=True) for number in numbers)


def _counted(snapshot: Snapshot, number: int, language: str, *, titles: bool) -> Replacement:
    """A shard with the terms of its documents counted in their stored text."""
    members = live_members(snapshot, number)
    documents = snapshot.documents(members)
    words = count_documents(segmenter_of(language), (document for document, _ in documents), titles=titles)
    shard = replace(live_shard(snapshot, number), words=words)
    roster = snapshot.roster
    ids = roster.ids[members].tolist()
    return Replacement([number], shard, ids, roster.n_sections[members], roster.n_chunks[members])
