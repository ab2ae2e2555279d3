"""Rewrites shards without the vectors of removed documents, and joins small ones. Encodes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import func, select

from engine.store.ann import AUTO
from engine.store.catalog import DocumentRow, GenerationRow, ShardRow
from engine.store.shards import Shard
from engine.store.snapshot import Snapshot, ranges
from engine.store.writer import Writer
from indexer.generation import publish_generation

SHARD_CHUNKS = 65_536  # of a compacted shard; 50 MB at width 384


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction changed."""

    n_shards_before: int
    n_shards_after: int
    bytes_before: int
    bytes_after: int
    n_dead_vectors: int  # in the generation, before it was rebuilt


def compact(path: str | Path, *, tell: Callable[[str], None] = lambda _: None) -> CompactReport:
    """Give back the space of removed documents; ids, and so results, stay the same.

    Each new shard is committed by itself, so a kill loses nothing. A generation
    that holds vectors of removed documents is rebuilt.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
    """
    with Writer(Path(path)) as writer:
        before = _sizes(writer)
        for group in _groups(writer):
            tell(f"joining {len(group)} shards")
            _rewrite(writer, group)
        n_dead = _dead_vectors(writer)
        if n_dead:
            with writer.read() as connection:
                factory = connection.execute(select(GenerationRow.factory)).scalars().first() or AUTO
            publish_generation(writer, factory, tell=tell)
        writer.vacuum()
        after = _sizes(writer)
    return CompactReport(before[0], after[0], before[1], after[1], n_dead)


def _sizes(writer: Writer) -> tuple[int, int]:
    with writer.read() as connection:
        statement = select(func.count(), func.coalesce(func.sum(ShardRow.size_bytes), 0)).select_from(ShardRow)
        count, size = connection.execute(statement).one()
    return int(count), int(size)


def _groups(writer: Writer) -> Iterator[list[int]]:
    """Shards to be rewritten together: neighbours, up to `SHARD_CHUNKS` live chunks."""
    live = select(DocumentRow.shard_id, func.sum(DocumentRow.n_chunks).label("n")).group_by(DocumentRow.shard_id)
    with writer.read() as connection:
        n_live = {shard: int(count) for shard, count in connection.execute(live)}
        rows = connection.execute(select(ShardRow.id, ShardRow.n_chunks).order_by(ShardRow.id)).all()
    group: list[int] = []
    n_chunks = 0
    has_dead = False
    for row in rows:
        if group and n_chunks + n_live.get(row.id, 0) > SHARD_CHUNKS:
            if len(group) > 1 or has_dead:
                yield group
            group, n_chunks, has_dead = [], 0, False
        group.append(row.id)
        n_chunks += n_live.get(row.id, 0)
        has_dead |= n_live.get(row.id, 0) < row.n_chunks
    if len(group) > 1 or has_dead:
        yield group


def _rewrite(writer: Writer, shards: list[int]) -> None:
    with Snapshot(writer.folder) as snapshot:
        roster = snapshot.roster
        positions = np.flatnonzero(np.isin(roster.shard, shards))
        pieces: list[Shard] = []
        for number in shards:
            members = positions[roster.shard[positions] == number]
            shard = snapshot.shard(number)
            pieces.append(
                Shard(
                    documents=shard.documents[roster.document_row[members]],
                    sections=shard.sections[ranges(roster.section_row[members], roster.n_sections[members])],
                    chunks=shard.chunks[ranges(roster.chunk_row[members], roster.n_chunks[members])],
                    spans=shard.spans[ranges(roster.chunk_row[members], roster.n_chunks[members])],
                )
            )
        order = positions[np.argsort(roster.shard[positions], kind="stable")]
        joined = Shard(
            documents=np.concatenate([piece.documents for piece in pieces]),
            sections=np.concatenate([piece.sections for piece in pieces]),
            chunks=np.concatenate([piece.chunks for piece in pieces]),
            spans=np.concatenate([piece.spans for piece in pieces]),
        )
        ids = roster.ids[order].tolist()
        n_sections, n_chunks = roster.n_sections[order], roster.n_chunks[order]
    writer.replace_shards(shards, joined, ids, n_sections, n_chunks)


def _dead_vectors(writer: Writer) -> int:
    with Snapshot(writer.folder) as snapshot:
        row = snapshot.generation_row
        if row is None:
            return 0
        n_covered = int(snapshot.roster.n_chunks[~snapshot.is_fresh(row.through_chunk)].sum())
        return int(row.n_vectors) - n_covered
