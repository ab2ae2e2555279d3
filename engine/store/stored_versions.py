"""Documents of an index folder with their chunk vectors, as its writer reads them. Encodes and changes nothing.

Letters in shapes: C chunks of a document, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import String, bindparam, select, type_coerce

from engine.errors import IndexDamaged
from engine.store.catalog import ShardRow
from engine.store.checks import stored_rows
from engine.store.documents import stored_documents
from engine.store.durable import Checksum
from engine.store.shards import ShardSet
from engine.store.writer import Writer
from engine.text.document import Document

_SHARD = select(ShardRow.file, ShardRow.size_bytes, ShardRow.digest, type_coerce(ShardRow.part_digests, String)).where(
    ShardRow.id == bindparam("number")
)


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A document with the vectors of its chunks."""

    document: Document
    spans: NDArray[np.int32]  # (C, 4), see `engine.store.shards.Shard`
    chunks: NDArray[np.float16]  # (C, D), a view of the shard


class StoredVersions:
    """The documents of a folder that is held for writing; each shard is mapped and checked once."""

    def __init__(self, writer: Writer) -> None:
        """Read from the folder of a writer."""
        self._writer = writer
        self._shards: dict[int, ShardSet] = {}  # numbers are used once, and a shard never changes

    def find(self, document_id: int) -> StoredVersion | None:
        """Look up a document by catalog id; None if it was removed or has no vectors.

        Raises:
            IndexDamaged: its rows, its text or its shard are not what was written.
        """
        with self._writer.read() as connection:
            row = stored_rows(connection, [document_id]).get(document_id)
            if row is None or not row["n_chunks"]:
                return None
            ((document, _),) = stored_documents(connection, [document_id])
        number = row["shard_id"]
        shards = self._opened(number)
        own = slice(row["chunk_row"], row["chunk_row"] + row["n_chunks"])
        return StoredVersion(document, shards.spans(number)[own], shards.chunks(number)[own])

    def _opened(self, number: int) -> ShardSet:
        if number not in self._shards:
            with self._writer.read() as connection:
                row = connection.execute(_SHARD, {"number": number}).first()
            if row is None:
                raise IndexDamaged(f"the catalog does not name shard {number}; check it: longmatch upkeep verify INDEX")
            file, size_bytes, digest, parts = row
            written = {number: (file, Checksum(size_bytes, digest))}
            self._shards[number] = ShardSet(self._writer.folder, written, {number: parts})
        return self._shards[number]
