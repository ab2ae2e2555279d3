"""Brings an index that an earlier version wrote to the present schema, from its stored text. Encodes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sqlalchemy import select

from engine.store.catalog import ShardRow
from engine.store.snapshot import Snapshot
from engine.store.writer import Replacement, Writer
from engine.words.counts import count_documents
from engine.words.languages import check_language, detect_language
from engine.words.segmenter import segmenter_of
from indexer.generation.compaction import live_members, live_shard

_LANGUAGE_DOCUMENTS = 64  # whose texts decide on the language of an index


def upgrade(writer: Writer, language: str | None, log: Callable[[str], None]) -> None:
    """Run all upgrade steps that the index still needs; a stopped upgrade continues where it was.

    Args:
        writer: holds the index.
        language: language of the word segmentation, if the index has none; by default detected in the text.
        log: called with one line for each step.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
        QueryError: there is no such language.
    """
    upgrade_words(writer, language, log)
    upgrade_titles(writer, log)
    upgrade_kinds(writer, log)


def upgrade_words(writer: Writer, language: str | None, log: Callable[[str], None]) -> None:
    """Add term counts, from the stored text, to the shards of an index that an earlier version wrote.

    Each shard is committed by itself, so that a stopped run continues where it was; words
    count once all shards have them.

    Args:
        writer: holds the index.
        language: language of the word segmentation; by default detected in the text.
        log: called with one line for each step.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
        QueryError: there is no such language.
    """
    if not writer.lacks_words:
        return
    if language is not None:
        check_language(language)
    numbers = _shard_numbers(writer)
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
    """Recount terms, those of titles more often, in an index that an earlier version wrote, from the stored text.

    All shards change in one transaction, so that no reader sees both kinds of counts. The reference and the postings
    are deleted with the old counts, so that new ones are made.

    Args:
        writer: holds the index.
        log: called with one line before the counting.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
    """
    language = writer.language
    if language is None or writer.counts_titles:
        return
    numbers = _shard_numbers(writer)
    if numbers:
        log(f"counting words of titles in {len(numbers):,} shards of an earlier version: scores change with it")
    with Snapshot(writer.folder) as snapshot:
        writer.recount_words(_counted(snapshot, number, language, titles=True) for number in numbers)


def upgrade_kinds(writer: Writer, log: Callable[[str], None]) -> None:
    """Count terms apart by kind of section in an index that an earlier version wrote, from the stored text.

    Each shard is committed by itself, so that a run that was stopped goes on where it was. No score changes, and the
    reference stays; searches that skip a kind are quicker once all shards have the counts.

    Args:
        writer: holds the index, whose titles are counted.
        log: called with one line before the counting.

    Raises:
        IndexDamaged: a shard or a text cannot be read; repair first.
    """
    language = writer.language
    if language is None or writer.knows_kinds:
        return
    is_first = "section_kinds" not in writer.meta  # else other rules found the kinds, and all are counted again
    numbers = _shard_numbers(writer)
    with Snapshot(writer.folder) as snapshot:
        lacking = [number for number in numbers if not (is_first and _counts_apart(snapshot, number))]
        if lacking:
            log(f"counting words by kind of section in {len(lacking):,} shards of an earlier version")
        for number in lacking:
            writer.replace_shards(_counted(snapshot, number, language, titles=writer.counts_titles))
    writer.record_kinds()


def _shard_numbers(writer: Writer) -> list[int]:
    with writer.read() as connection:
        return list(connection.execute(select(ShardRow.id).order_by(ShardRow.id)).scalars())


def _counts_apart(snapshot: Snapshot, number: int) -> bool:
    words = snapshot.shard(number).words
    return words is not None and words.apart is not None


def _counted(snapshot: Snapshot, number: int, language: str, *, titles: bool) -> Replacement:
    """A shard with the terms of its documents counted in their stored text."""
    members = live_members(snapshot, number)
    documents = snapshot.documents(members)
    words = count_documents(segmenter_of(language), (document for document, _ in documents), titles=titles)
    shard = replace(live_shard(snapshot, number), words=words)
    roster = snapshot.roster
    ids = roster.ids[members].tolist()
    return Replacement([number], shard, ids, roster.n_sections[members], roster.n_chunks[members])
