"""Names, texts, metadata and counts of documents, read from the catalog by position. Reads no shard.

Methods that read single documents compare their rows with their checksums. Methods that read all documents compare
the whole catalog first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import IndexDamaged, faults_named
from engine.store.catalog import CATALOG_FILE, NamedRow, catalog_faults
from engine.store.checks import check_location_table, stored_rows
from engine.store.documents import stored_documents
from engine.store.locations import Listed, Locations, check_locations, name_key, read_blocks
from engine.store.reference import content_key
from engine.text.document import Document
from engine.text.spans import Coverage


class Listing:
    """The catalog of one snapshot; documents are addressed by position."""

    folder: Path
    meta: dict[str, Any]
    _connection: sqlite3.Connection
    _shard_rows: Mapping[int, NamedRow]
    _last_position: tuple[str, int | None] | None = None

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement; of a single column, its values."""
        with catalog_faults(self.folder / CATALOG_FILE):
            cursor = self._connection.execute(statement, values)
            rows = cursor.fetchall()
        return [value for (value,) in rows] if len(cursor.description) == 1 else rows

    @cached_property
    def _listed(self) -> Listed:
        """All documents by location blocks."""
        connection, place = self._connection, str(self.folder / CATALOG_FILE)
        with faults_named(place):
            check_location_table(connection, place)
            listed = read_blocks(connection, place)
        check_locations(listed.locations, self._shard_rows, place)
        return listed

    @cached_property
    def locations(self) -> Locations:
        """Where the vectors of each document are, read at first use."""
        return self._listed.locations

    def _check_all(self) -> None:
        """Compare all rows with their checksums, once; methods that read all rows call this first."""

    def position(self, doc_id: str) -> int | None:
        """Position of a document by its name; the last name is remembered, as a query by id looks it up twice."""
        last = self._last_position
        if last is None or last[0] != doc_id:
            self._last_position = last = doc_id, self._position(doc_id)
        return last[1]

    def _position(self, doc_id: str) -> int | None:
        chosen = np.flatnonzero(self._listed.names == np.uint64(name_key(doc_id)))
        names = self.doc_ids_of(chosen)
        return int(chosen[names.index(doc_id)]) if doc_id in names else None

    def copies(self, content: str) -> list[str]:
        """The names of the documents that have a content hash, in order."""
        chosen = np.flatnonzero(self._listed.contents == np.uint64(content_key(content)))
        rows = self._rows(chosen)
        return sorted(str(row["doc_id"]) for row in rows if row["content_hash"] == content)

    def doc_ids(self) -> list[str]:
        """All names, in the order of positions."""
        self._check_all()
        return self._read("SELECT doc_id FROM documents ORDER BY id")

    def titles(self) -> list[tuple[str, str]]:
        """(doc_id, title) of all documents, in the order of positions."""
        self._check_all()
        return self._read("SELECT doc_id, title FROM documents ORDER BY id")

    def doc_ids_of(self, positions: NDArray[np.int64]) -> list[str]:
        """The names of documents, in the order given."""
        return [str(row["doc_id"]) for row in self._rows(positions)]

    def content_keys(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of documents, in the order given, as a reference keeps them."""
        return self._listed.contents[positions]

    def _rows(self, positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The rows of documents, in the order given."""
        ids: list[int] = self.locations.ids[positions].tolist()
        with faults_named():
            found = stored_rows(self._connection, ids)
        if len(found) != len(set(ids)):  # they have locations in the same transaction
            raise IndexDamaged(
                f"{len(set(ids)) - len(found)} documents have no row in the catalog; "
                "check it: longmatch upkeep verify INDEX"
            )
        return [found[one] for one in ids]

    def content_hashes(self) -> dict[str, str]:
        """The hash of every document's content, by name."""
        self._check_all()
        return dict(self._read("SELECT doc_id, content_hash FROM documents"))

    def chunk_counts(self) -> dict[str, int]:
        """The number of chunks of every document, by name."""
        self._check_all()
        return dict(self._read("SELECT doc_id, n_chunks FROM documents"))

    def similar_names(self, doc_id: str, limit: int = 3) -> list[str]:
        """Names that contain the given one, for error messages."""
        self._check_all()
        # Regardless of case, as LIKE compares.
        statement = "SELECT doc_id FROM documents WHERE instr(lower(doc_id), lower(?)) LIMIT ?"
        return self._read(statement, [doc_id, limit])

    def matching(self, where: str) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter; see `engine.store.where`."""
        from engine.store.where import parse_where

        self._check_all()
        condition = parse_where(where)
        ids = self._read(f"SELECT id FROM documents WHERE {condition.sql}", condition.values)
        return np.isin(self.locations.ids, np.array(ids, np.int64))

    def documents(self, positions: NDArray[np.int64]) -> list[tuple[Document, Coverage]]:
        """Documents in the order given; text and sections are unpacked when first read, also after closing.

        Raises:
            IndexDamaged: a text is missing, or is not what was written.
        """
        ids = self.locations.ids[positions].tolist()
        found = stored_documents(self._connection, ids)
        if len(found) != len(ids):  # they have locations in the same transaction
            raise IndexDamaged(
                f"{len(ids) - len(found)} documents have no text in the catalog; "
                "check it: longmatch upkeep verify INDEX"
            )
        return found

    def totals(self) -> dict[str, int]:
        """Counts that `info` shows: documents, sections, chunks, tokens, failures, shards and their bytes."""
        self._check_all()
        ((read, total, sections, failures),) = self._read(
            "SELECT coalesce(sum(tokens_read), 0), coalesce(sum(tokens_total), 0), "
            "(SELECT count(*) FROM sections), (SELECT count(*) FROM failures) FROM documents"
        )
        return {
            "documents": len(self.locations),
            "encoded": int(np.count_nonzero(self.locations.n_chunks)),
            "sections": int(sections),
            "chunks": int(self.locations.n_chunks.sum()),
            "tokens_read": int(read),
            "tokens_total": int(total),
            "shards": len(self._shard_rows),
            "shard_bytes": sum(row.size_bytes for row in self._shard_rows.values()),
            "failures": int(failures),
        }

    def failures(self) -> list[tuple[str, str]]:
        """Documents that could not be indexed: (source, reason), by source."""
        self._check_all()
        return self._read("SELECT source, reason FROM failures ORDER BY source")
