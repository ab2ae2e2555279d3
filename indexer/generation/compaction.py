"""Rewrites shards without the vectors of removed documents, and joins small ones. Encodes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import named_faults
from engine.store.shards import Shard
from engine.store.snapshot import IndexSnapshot, Positions
from engine.store.writer import Replacement, Writer, open_writers, staged_shards
from engine.words.apart import ranges
from engine.words.counts import join, pack, unpacked
from indexer.generation.generations import generation_state, publish_generation
from indexer.generation.resources import DiskGuard

SHARD_CHUNKS = 65_536  # most chunks of a joined shard; 50 MB at width 384
WORDS_CHUNKS = 12  # the term counts of a document take about the room of this number of chunks
MANY_SHARDS = 8  # least number of small shards that are joined
_GROUPS_AT_ONCE = 8  # groups joined with one opened index, which maps replaced files until it is closed


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What compaction changed."""

    n_shards_before: int
    n_shards_after: int
    bytes_before: int
    bytes_after: int
    n_dead_vectors: int  # in the generation, before it was rebuilt


@named_faults
def compact(path: str | Path, *, log: Callable[[str], None] = lambda _: None) -> CompactReport:
    """Give back the space of removed documents; ids, and so results, stay the same.

    Each new shard is committed by itself, so a kill loses nothing. A generation that holds vectors of removed
    documents is rebuilt.

    Raises:
        IndexBusy: another process writes the index.
        IndexDamaged: a shard is damaged; repair first.
    """
    with open_writers(Path(path)) as target:
        reports = [_compacted(writer, log) for writer in target.parts]
    return CompactReport(*(sum(getattr(report, field.name) for report in reports) for field in fields(CompactReport)))


def _compacted(writer: Writer, log: Callable[[str], None]) -> CompactReport:
    before = _shards(writer)
    groups = (group for group in _groups(before, SHARD_CHUNKS) if len(group) > 1 or group[0].has_dead)
    _rewrite_all(writer, groups, log)
    with IndexSnapshot(writer.folder) as snapshot:
        state = generation_state(snapshot)
    n_dead = 0 if state is None else state.n_vectors - state.n_covered
    if state is not None and n_dead:
        publish_generation(writer, state.factory, log=log)
    writer.vacuum()
    after = _shards(writer)
    n_before, n_after = (sum(shard.size_bytes for shard in shards) for shards in (before, after))
    return CompactReport(len(before), len(after), n_before, n_after, n_dead)


def join_small_shards(
    writer: Writer,
    disk: DiskGuard,
    *,
    left_bytes: int | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Join the shards of many batches into few, from which a search gathers its vectors faster.

    Shards up to half of `SHARD_CHUNKS` are small. They are left alone until there are `MANY_SHARDS`, so that each
    vector is rewritten a few times at most, however many runs add documents. Ids, and so results, stay the same.

    Raises:
        IndexDamaged: a small shard is damaged; earlier commits are safe, repair first.
    """
    shards = _shards(writer)
    bytes_a_chunk = sum(shard.size_bytes for shard in shards) / max(1, sum(shard.n_live for shard in shards))
    # Pieces and the whole are in memory together; files that are still mapped keep their place on disk.
    room = SHARD_CHUNKS if left_bytes is None else int(left_bytes / 2 / max(1, bytes_a_chunk))
    most_chunks = min(SHARD_CHUNKS, room)
    small = [shard for shard in shards if shard.n_live <= most_chunks // 2]
    groups = [group for group in _groups(small, most_chunks) if len(group) > 1]
    written = sum(sorted(sum(shard.size_bytes for shard in group) for group in groups)[-_GROUPS_AT_ONCE:])
    if len(small) >= MANY_SHARDS and written <= disk.left_bytes():
        _rewrite_all(writer, groups, log)


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a shard."""

    number: int
    n_live: int  # chunks of documents that are still there; one without vectors counts as `WORDS_CHUNKS`
    size_bytes: int
    has_dead: bool


def _shards(writer: Writer) -> list[_Size]:
    weight = f"iif(n_chunks = 0, {WORDS_CHUNKS}, n_chunks)"
    live = f"SELECT shard_id, sum({weight}), count(*) FROM documents GROUP BY shard_id"
    with writer.read() as connection:
        n_live = {shard: (int(chunks), int(documents)) for shard, chunks, documents in connection.execute(live)}
        rows = connection.execute("SELECT id, n_documents, size_bytes FROM shards ORDER BY id").fetchall()
        staged = staged_shards(connection)
    sizes = []
    for number, n_written, size_bytes in rows:
        if number not in staged:
            n_chunks, n_documents = n_live.get(number, (0, 0))
            sizes.append(_Size(number, n_chunks, size_bytes, n_documents < n_written))
    return sizes


def _groups(shards: Iterable[_Size], most_chunks: int) -> Iterator[list[_Size]]:
    """Cut shards into runs of up to `most_chunks` live chunks; a larger shard is a run by itself."""
    group: list[_Size] = []
    n_chunks = 0
    for shard in shards:
        if group and n_chunks + shard.n_live > most_chunks:
            yield group
            group, n_chunks = [], 0
        group.append(shard)
        n_chunks += shard.n_live
    if group:
        yield group


def _rewrite_all(writer: Writer, groups: Iterable[list[_Size]], log: Callable[[str], None]) -> None:
    """Make one shard of each group; an opened index serves for several."""
    waiting = iter(groups)
    while some := list(islice(waiting, _GROUPS_AT_ONCE)):
        with IndexSnapshot(writer.folder) as snapshot:
            for group in some:
                log(f"joining {len(group)} shards")
                _rewrite(writer, snapshot, [shard.number for shard in group])


def _rewrite(writer: Writer, snapshot: IndexSnapshot, shards: list[int]) -> None:
    locations = snapshot.locations
    members = [live_members(snapshot, number) for number in shards]
    pieces = [live_shard(snapshot, number) for number in shards]
    joined = Shard(
        documents=_rows(snapshot, [piece.documents for piece in pieces]),
        sections=_rows(snapshot, [piece.sections for piece in pieces]),
        chunks=_rows(snapshot, [piece.chunks for piece in pieces]),
        spans=np.concatenate([piece.spans for piece in pieces]),
        words=pack(join([unpacked(piece.words) for piece in pieces])),
    )
    order = np.concatenate(members)
    ids = locations.ids[order].tolist()
    writer.replace_shards(Replacement(shards, joined, ids, locations.n_sections[order], locations.n_chunks[order]))


def _rows(snapshot: IndexSnapshot, pieces: Sequence[NDArray[np.float16]]) -> NDArray[np.float16]:
    """Rows of several shards; shards written before the index had an encoder have width 0 and become zeros."""
    wide = [piece if piece.shape[1] else np.zeros((len(piece), snapshot.width), np.float16) for piece in pieces]
    return np.concatenate(wide)


def live_members(snapshot: IndexSnapshot, number: int) -> Positions:
    """The documents of a shard that are still there, in the order of `live_shard`."""
    return np.flatnonzero(snapshot.locations.shard == number)


def live_shard(snapshot: IndexSnapshot, number: int) -> Shard:
    """A shard without what removed documents left in it."""
    locations, shard, members = snapshot.locations, snapshot.shard(number), live_members(snapshot, number)
    chunks = ranges(locations.chunk_row[members], locations.n_chunks[members])
    return Shard(
        documents=shard.documents[locations.document_row[members]],
        sections=shard.sections[ranges(locations.section_row[members], locations.n_sections[members])],
        chunks=shard.chunks[chunks],
        spans=shard.spans[chunks],
        words=shard.words.of(locations.document_row[members]),
    )
