"""Vectors of another encoder, staged shard by shard beside those of an index, which `switch` replaces at once.

Searches read none of the staged vectors until `switch`. A staged shard is named in the catalog like any
other, so that it survives a killed run; only this module looks for documents in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from engine.encoders.encoder import EncodedDocument
from engine.store.catalog import (
    DocumentRow,
    GenerationRow,
    ReferenceRow,
    ShardRow,
    StagedShardRow,
    WordPostingsRow,
    write_meta,
)
from engine.store.checks import check_catalog, record_documents
from engine.store.documents import places
from engine.store.shards import shard_arrays
from engine.store.writer import Writer
from engine.words.counts import WordTables

# The values of `places` that are staged, with first chunks counted from 0.
_PLACE = (
    *("document_row", "section_row", "chunk_row", "first_chunk", "n_chunks", "n_sections"),
    *("tokens_read", "tokens_total"),
)


def stage(
    writer: Writer,
    document_ids: Sequence[int],
    encoded: Sequence[EncodedDocument],
    words: WordTables,
    fingerprint: str,
) -> int:
    """Store the vectors of documents until `switch`, in one transaction.

    Args:
        words: the term counts of each, as they were committed.

    Raises:
        IndexMismatch: the folder was moved, removed, or replaced by another index.
    """
    counters = writer._counters()
    number = counters["shard"]
    writer._check_place()
    written = writer._write(number, shard_arrays(encoded, words))
    placed = zip(document_ids, places(encoded, number, 0), strict=True)
    staged = [[one, *(place[column] for column in _PLACE)] for one, place in placed]
    counters = {**counters, "shard": number + 1}
    with writer._transaction() as connection:
        connection.execute(insert(ShardRow).values(written))
        values = {"shard_id": number, "fingerprint": fingerprint, "documents": staged}
        connection.execute(insert(StagedShardRow).values(values))
        write_meta(connection, {"counters": counters})
    writer.meta["counters"] = counters
    return len(staged)


def staged_ids(writer: Writer, fingerprint: str) -> set[int]:
    """Catalog ids of the documents whose vectors by an encoder are staged."""
    with writer.read() as connection:
        return {row[0] for _, documents in _staged(connection, fingerprint) for row in documents}


def staged_shards(connection: Connection) -> set[int]:
    """The numbers of shards that are staged."""
    return set(connection.execute(select(StagedShardRow.shard_id)).scalars())


def drop_staged(writer: Writer, *, keep: str = "") -> int:
    """Delete staged shards.

    Args:
        keep: fingerprint of an encoder whose vectors stay.
    """
    with writer.read() as connection:
        others = select(StagedShardRow.shard_id).where(StagedShardRow.fingerprint != keep)
        numbers = list(connection.execute(others).scalars())
    if numbers:
        writer.drop_shards(numbers)
    return len(numbers)


def switch(writer: Writer, encoder: Mapping[str, Any], factory: str | None) -> None:
    """Replace the vectors of all documents with the staged ones, in one transaction.

    Generation, postings and reference are deleted with the old vectors; queries read all vectors until new ones are
    published.

    Args:
        writer: holds the index, all of whose documents are staged.
        encoder: `name`, `fingerprint` and `width` of the encoder of the staged vectors.
        factory: of the deleted generation, recorded in case the run is stopped here; None without a generation.
    """
    counters = writer._counters()
    next_chunk = counters["chunk"]
    with writer._transaction() as connection:
        check_catalog(connection, str(writer.catalog))
        there = set(connection.execute(select(DocumentRow.id)).scalars())
        moves: list[dict[str, int]] = []
        for number, documents in _staged(connection, str(encoder["fingerprint"])):
            for one, *place in documents:
                if one in there:
                    move = {"one": one, "shard_id": number, **dict(zip(_PLACE, place, strict=True))}
                    move["first_chunk"] = next_chunk
                    next_chunk += max(1, move["n_chunks"])
                    moves.append(move)
        assert {move["one"] for move in moves} == there and len(moves) == len(there)
        if moves:
            by_id = update(DocumentRow.__table__).where(DocumentRow.id == bindparam("one"))  # type: ignore[arg-type]
            connection.execute(by_id, moves)
        for table in (StagedShardRow, GenerationRow, WordPostingsRow, ReferenceRow):
            connection.execute(delete(table))
        connection.execute(delete(ShardRow).where(ShardRow.id.not_in({move["shard_id"] for move in moves})))
        record_documents(connection, there)
        next_ids = {**counters, "chunk": next_chunk}
        values = {"encoder": dict(encoder), "counters": next_ids, "factory_before": factory}
        write_meta(connection, values)
    writer.meta |= values
    writer._sweep()


def _staged(connection: Connection, fingerprint: str) -> list[tuple[int, list[list[int]]]]:
    """Number and documents of each staged shard, in their order."""
    columns = select(StagedShardRow.shard_id, StagedShardRow.documents)
    chosen = columns.where(StagedShardRow.fingerprint == fingerprint).order_by(StagedShardRow.shard_id)
    return [(row[0], row[1]) for row in connection.execute(chosen)]
