"""Vectors of another encoder, staged shard by shard beside those of an index, which `switch` replaces at once.

Searches read none of the staged vectors until `switch`. A staged shard is named in the catalog like any
other, so that it survives a killed run; only this module looks for documents in it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.encoders.encoder import EncodedDocument
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
    """Store the vectors of documents, and their term counts as committed, until `switch`, in one transaction.

    Raises:
        IndexMismatch: the folder was moved, removed, or replaced by another index.
    """
    with writer._new_shard(shard_arrays(encoded, words)) as (_, number):
        placed = zip(document_ids, places(encoded, number, 0), strict=True)
        staged = [[one, *(place[column] for column in _PLACE)] for one, place in placed]
        row = {"shard_id": number, "fingerprint": fingerprint, "documents": staged}
        writer._insert("staged_shards", [row])
    return len(staged)


def staged_ids(writer: Writer, fingerprint: str) -> set[int]:
    """Catalog ids of the documents whose vectors by an encoder are staged."""
    with writer.read() as connection:
        return {row[0] for _, documents in _staged(connection, fingerprint) for row in documents}


def staged_shards(connection: sqlite3.Connection) -> set[int]:
    """The numbers of shards that are staged."""
    return {number for (number,) in connection.execute("SELECT shard_id FROM staged_shards")}


def drop_staged(writer: Writer, *, keep: str = "") -> int:
    """Delete staged shards, except those of the encoder with the fingerprint `keep`."""
    with writer.read() as connection:
        others = connection.execute("SELECT shard_id FROM staged_shards WHERE fingerprint != ?", [keep])
        numbers = [number for (number,) in others]
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
    values = {"encoder": dict(encoder), "factory_before": factory}
    with writer._transaction(values) as connection:
        check_catalog(connection, str(writer.catalog))
        there = {one for (one,) in connection.execute("SELECT id FROM documents")}
        next_chunk = counters["chunk"]
        moves: list[dict[str, int]] = []
        for number, documents in _staged(connection, str(encoder["fingerprint"])):
            for one, *place in documents:
                if one in there:
                    move = {"id": one, "shard_id": number, **dict(zip(_PLACE, place, strict=True))}
                    move["first_chunk"] = next_chunk
                    next_chunk += max(1, move["n_chunks"])
                    moves.append(move)
        assert {move["id"] for move in moves} == there and len(moves) == len(there)
        writer._update_documents(moves)
        for table in ("staged_shards", "generations", "word_postings", "reference"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("DELETE FROM shards WHERE id NOT IN (SELECT shard_id FROM documents)")
        record_documents(connection, there)
        values["counters"] = {**counters, "chunk": next_chunk}
    writer._sweep()


def _staged(connection: sqlite3.Connection, fingerprint: str) -> Iterator[tuple[int, list[list[int]]]]:
    """Number and documents of each staged shard, in their order."""
    statement = "SELECT shard_id, documents FROM staged_shards WHERE fingerprint = ? ORDER BY shard_id"
    for number, documents in connection.execute(statement, [fingerprint]):
        yield number, json.loads(documents)
