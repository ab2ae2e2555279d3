"""Where the vectors of each document are, which every query needs, and how the catalog stores it: blocks of arrays.

The blocks are written in the transaction that changes the rows. Each has a checksum, and there is one over all of
them (`engine.store.checks`), so a document that is in no block is not in the index. Names and contents are there as
keys of 64 bits, by which a document is found, or proven to be absent, without a search in the catalog.

Letters in shapes: N documents.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.errors import IndexDamaged
from engine.store.catalog import NamedRow
from engine.store.reference import content_key


@dataclass(frozen=True, slots=True)
class Locations:
    """Where the vectors of each document are; all arrays are (N,), in the order of catalog ids."""

    ids: NDArray[np.int64]
    shard: NDArray[np.int64]
    document_row: NDArray[np.int64]
    section_row: NDArray[np.int64]
    n_sections: NDArray[np.int64]
    chunk_row: NDArray[np.int64]
    first_chunk: NDArray[np.int64]
    n_chunks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def moved(self, positions: NDArray[np.int64], **columns: NDArray[np.int64]) -> Locations:
        """A copy with other values (R,) in some columns of R documents."""
        changed = {name: getattr(self, name).copy() for name in columns}
        for name, values in columns.items():
            changed[name][positions] = values
        return replace(self, **changed)


BLOCK_IDS = 512  # catalog ids of one block
_PLACES = "id, shard_id, document_row, section_row, n_sections, chunk_row, first_chunk, n_chunks"  # as in `Locations`
_N_COLUMNS = len(fields(Locations)) + 3
_DAMAGED = "the location table of {place} is not what was written; check it: longmatch upkeep verify INDEX"


@dataclass(frozen=True, slots=True)
class Listed:
    """Values of all documents, known without reading their rows; all arrays are (N,), in the order of catalog ids."""

    locations: Locations
    tokens: NDArray[np.int64]
    contents: NDArray[np.uint64]  # see `engine.store.reference.content_key`
    names: NDArray[np.uint64]  # see `name_key`


def name_key(doc_id: str) -> int:
    """The key of a name."""
    return xxhash.xxh3_64_intdigest(doc_id.encode())


def write_blocks(connection: sqlite3.Connection, document_ids: Iterable[int] | None = None) -> None:
    """Write the blocks of documents whose rows were written or deleted in this transaction; all by default."""
    if document_ids is None:
        connection.execute("DELETE FROM location_blocks")
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM documents").fetchone()
        blocks: Sequence[int] = range(last // BLOCK_IDS + 1)
    else:
        blocks = sorted({int(document_id) // BLOCK_IDS for document_id in document_ids})
    for block in blocks:
        first = block * BLOCK_IDS
        table = _table(connection, f"WHERE id BETWEEN {first} AND {first + BLOCK_IDS - 1}")
        connection.execute("DELETE FROM location_blocks WHERE block = ?", [block])
        if table.shape[1]:
            arrays = table.astype("<i8").tobytes()
            row = (block, table.shape[1], arrays, _checksum(arrays))
            connection.execute("INSERT INTO location_blocks VALUES (?, ?, ?, ?)", row)


def read_blocks(connection: sqlite3.Connection, place: str) -> Listed:
    """All documents by their blocks, as the open transaction sees them.

    Args:
        connection: to a catalog whose table of blocks was compared with its checksum.

    Raises:
        IndexDamaged: a block is not what was written.
    """
    statement = "SELECT n_documents, arrays, checksum FROM location_blocks ORDER BY block"
    tables = [np.empty((_N_COLUMNS, 0), np.int64)]
    for n_documents, arrays, check in connection.execute(statement):
        if not isinstance(arrays, bytes) or _checksum(arrays) != check or len(arrays) != n_documents * _N_COLUMNS * 8:
            raise IndexDamaged(_DAMAGED.format(place=place))
        tables.append(np.frombuffer(arrays, "<i8").reshape(_N_COLUMNS, -1))
    return _listed(np.concatenate(tables, axis=1))


def check_blocks(connection: sqlite3.Connection, place: str) -> None:
    """Compare the blocks with the rows of all documents.

    Raises:
        IndexDamaged: they differ.
    """
    by_blocks, by_rows = read_blocks(connection, place), _listed(_table(connection))
    if not all(map(np.array_equal, _arrays(by_blocks), _arrays(by_rows))):
        raise IndexDamaged(_DAMAGED.format(place=place))


def _arrays(listed: Listed) -> Iterator[NDArray[Any]]:
    for field in fields(Locations):
        yield getattr(listed.locations, field.name)
    yield from (listed.tokens, listed.contents, listed.names)


def _listed(table: NDArray[np.int64]) -> Listed:
    *places, tokens, contents, names = table
    return Listed(Locations(*places), tokens, contents.view(np.uint64), names.view(np.uint64))


def _table(connection: sqlite3.Connection, where: str = "") -> NDArray[np.int64]:
    """The columns (`_N_COLUMNS`, N) of documents, by their rows."""
    statement = f"SELECT {_PLACES}, tokens_total, content_hash, doc_id FROM documents {where}"
    rows = connection.execute(f"{statement} ORDER BY id").fetchall()
    table = np.empty((_N_COLUMNS, len(rows)), np.int64)
    if rows:
        *numbers, contents, names = zip(*rows, strict=True)
        table[:-2] = np.array(numbers, np.int64)
        table[-2:] = np.array([list(map(_content, contents)), list(map(name_key, names))], np.uint64).view(np.int64)
    return table


def _content(content_hash: str) -> int:
    try:
        return content_key(content_hash)
    except ValueError:  # a damaged row, which is found by its checksum
        return 0


def _checksum(arrays: bytes) -> int:
    """The checksum as the signed integer of 64 bits that SQLite holds."""
    return int(np.uint64(xxhash.xxh3_64_intdigest(arrays)).astype(np.int64))


def check_locations(locations: Locations, shards: Mapping[int, NamedRow], place: str) -> None:
    """Refuse documents whose vectors would lie outside of their shard.

    Raises:
        IndexDamaged: a document has a row that its shard does not have.
    """
    if not len(locations):
        return
    numbers = np.array(sorted(shards), np.int64)
    at = np.minimum(np.searchsorted(numbers, locations.shard), max(0, len(numbers) - 1))
    is_there = numbers[at] == locations.shard if len(numbers) else np.zeros(len(locations), bool)
    n_documents, n_chunks = (
        np.array([getattr(shards[number], column) for number in numbers.tolist()] or [0], np.int64)[at]
        for column in ("n_documents", "n_chunks")
    )
    # Differences, because a sum of two forged numbers can overflow.
    fits = (
        is_there
        & (locations.document_row >= 0)
        & (locations.document_row < n_documents)
        & (locations.n_chunks >= 0)
        & (locations.chunk_row >= 0)
        & (locations.chunk_row <= n_chunks - np.minimum(locations.n_chunks, n_chunks))
        & (locations.n_chunks <= n_chunks)
        & (locations.section_row >= 0)
        & (locations.n_sections >= 0)
    )
    if not fits.all():
        wrong = int(locations.ids[int(np.argmin(fits))])
        raise IndexDamaged(
            f"{place} places document number {wrong} outside of its shard; check it: longmatch upkeep verify INDEX"
        )
