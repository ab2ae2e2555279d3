"""Names, texts, metadata and counts of documents, read from the catalog by position. Reads no shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, func, select
from sqlalchemy.orm import InstrumentedAttribute

from engine.document import Coverage, Document
from engine.errors import IndexDamaged
from engine.store.catalog import DocumentRow, FailureRow, SectionRow
from engine.store.checks import has_checks
from engine.store.documents import stored_documents
from engine.store.reference import content_key
from engine.store.roster import Roster
from engine.store.where import parse_where

_IDS_PER_STATEMENT = 1_000


class Listing:
    """The catalog of one snapshot; documents are addressed by position."""

    roster: Roster
    meta: dict[str, Any]
    _connection: Connection
    _shard_rows: Mapping[int, Row[Any]]
    _last_position: tuple[str, int | None] | None = None

    def position(self, doc_id: str) -> int | None:
        """Position of a document by its name; the last name is remembered, as a query by id asks twice."""
        last = self._last_position
        if last is None or last[0] != doc_id:
            found = self._connection.execute(select(DocumentRow.id).where(DocumentRow.doc_id == doc_id)).scalar()
            last = doc_id, None if found is None else int(np.searchsorted(self.roster.ids, found))
            self._last_position = last
        return last[1]

    def doc_ids(self) -> list[str]:
        """All names, in the order of positions."""
        return list(self._connection.execute(select(DocumentRow.doc_id).order_by(DocumentRow.id)).scalars())

    def titles(self) -> list[tuple[str, str]]:
        """(doc_id, title) of all documents, in the order of positions."""
        rows = self._connection.execute(select(DocumentRow.doc_id, DocumentRow.title).order_by(DocumentRow.id))
        return [(row.doc_id, row.title) for row in rows]

    def doc_ids_of(self, positions: NDArray[np.int64]) -> list[str]:
        """The names of documents, in the order given."""
        ids = self.roster.ids[positions].tolist()
        return _in_order(self._connection, DocumentRow.doc_id, ids)

    def content_keys(self, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of documents, in the order given, as a reference keeps them."""
        ids = self.roster.ids[positions].tolist()
        found = _in_order(self._connection, DocumentRow.content_hash, ids)
        return np.array([content_key(one) for one in found], np.uint64)

    def content_hashes(self) -> dict[str, str]:
        """The hash of every document's content, by name."""
        rows = self._connection.execute(select(DocumentRow.doc_id, DocumentRow.content_hash))
        return {row.doc_id: row.content_hash for row in rows}

    def chunk_counts(self) -> dict[str, int]:
        """The number of chunks of every document, by name."""
        rows = self._connection.execute(select(DocumentRow.doc_id, DocumentRow.n_chunks))
        return {row.doc_id: row.n_chunks for row in rows}

    def similar_names(self, doc_id: str, limit: int = 3) -> list[str]:
        """Names that contain the given one, for error messages."""
        contains = DocumentRow.doc_id.contains(doc_id, autoescape=True)
        return list(self._connection.execute(select(DocumentRow.doc_id).where(contains).limit(limit)).scalars())

    def matching(self, where: str) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter; see `engine.store.where`."""
        ids = self._connection.execute(select(DocumentRow.id).where(parse_where(where))).scalars().all()
        return np.isin(self.roster.ids, np.array(ids, np.int64))

    def documents(self, positions: NDArray[np.int64]) -> list[tuple[Document, Coverage]]:
        """Documents in the order asked; text and sections are unpacked when first read, also after closing.

        Raises:
            IndexDamaged: a text is missing, or is not what was written.
        """
        ids = self.roster.ids[positions].tolist()
        found = stored_documents(self._connection, ids, checked=has_checks(self.meta))
        if len(found) != len(ids):  # they are in the roster of the same transaction
            raise IndexDamaged(
                f"{len(ids) - len(found)} documents have no text in the catalog; check it: longmatch verify INDEX"
            )
        return found

    def totals(self) -> dict[str, int]:
        """Counts that `info` shows: sections, tokens read and in all, failures, shards, bytes of vectors."""
        read, total, sections = self._connection.execute(
            select(
                func.coalesce(func.sum(DocumentRow.tokens_read), 0),
                func.coalesce(func.sum(DocumentRow.tokens_total), 0),
                select(func.count()).select_from(SectionRow).scalar_subquery(),
            )
        ).one()
        return {
            "documents": len(self.roster),
            "encoded": int(np.count_nonzero(self.roster.n_chunks)),
            "sections": int(sections),
            "chunks": int(self.roster.n_chunks.sum()),
            "tokens_read": int(read),
            "tokens_total": int(total),
            "shards": len(self._shard_rows),
            "shard_bytes": sum(row.size_bytes for row in self._shard_rows.values()),
            "failures": self._connection.execute(select(func.count()).select_from(FailureRow)).scalar_one(),
        }

    def failures(self) -> list[tuple[str, str]]:
        """What could not be indexed: (source, reason), by source."""
        rows = self._connection.execute(select(FailureRow.source, FailureRow.reason).order_by(FailureRow.source))
        return [(row.source, row.reason) for row in rows]


def _in_order(connection: Connection, column: InstrumentedAttribute[str], ids: Sequence[int]) -> list[str]:
    """A column of documents, in the order of their catalog ids."""
    found: dict[int, str] = {}
    for first in range(0, len(ids), _IDS_PER_STATEMENT):
        block = ids[first : first + _IDS_PER_STATEMENT]
        rows = connection.execute(select(DocumentRow.id, column).where(DocumentRow.id.in_(block)))
        found |= {row[0]: row[1] for row in rows}
    return [found[one] for one in ids]
