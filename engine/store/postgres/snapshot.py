"""The view that one reader has of an index in PostgreSQL: pinned on opening, independent of any writer.

The code that searches a folder also searches this snapshot: the score is computed here, not on the server, from the
same vectors and term counts. There is no generation, so every search is exact.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from engine.errors import IndexDamaged, IndexMismatch
from engine.store.address import Address
from engine.store.catalog import SCHEMA_VERSION
from engine.store.durable import Checksum
from engine.store.manifest import ReferenceFile
from engine.store.postgres.blocks import Runs, runs_of
from engine.store.postgres.mirror import mirrored
from engine.store.postgres.reading import Reader
from engine.store.postgres.schema import stored_settings
from engine.store.reference import Reference, parse_reference, reference_file
from engine.store.roster import Roster
from engine.store.roster_blocks import Listed, listed_rows
from engine.store.snapshot import Positions, Snapshot
from engine.text.document import Document
from engine.text.spans import Coverage, Section

_TABLES = ("documents", "sections", "chunks", "term_counts", "group_counts", "reference")
_DOCUMENTS = """
SELECT id, doc_id, title, source, metadata, pages, text, tokens_read, tokens_total FROM documents WHERE id = ANY(%s)
"""
_SECTIONS = """
SELECT document_id, heading, path, start, stop, n_merged, part, n_parts FROM sections WHERE document_id = ANY(%s)
ORDER BY document_id, position
"""


class PostgresSnapshot(Snapshot):
    """An index in PostgreSQL as it was when opened."""

    generation = None
    generation_row = None
    postings_row = None
    word_postings = None
    word_postings_row = None
    folder: Address
    _are_rows_checked = False

    def __init__(self, address: Address) -> None:
        """Open and pin an index; close it when done, or use it as a context manager.

        A transaction stays open until then, so that all rounds of a search see the same documents.

        Raises:
            IndexMismatch: there is no index, or one of another version.
            StorageError: the server does not answer, or refuses.
        """
        self.folder = address
        self._reader = Reader(address)
        try:
            self.meta: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **self._reader.settings}
            if not self.meta.keys() & {"encoder", "counters"}:
                raise IndexMismatch(f"{address} was begun but holds nothing yet; fill it: longmatch index ...")
            self.width = int((self.meta.get("encoder") or {"width": 0})["width"])
            self._connection = mirrored(self._reader)
            self.roster = _roster(self._reader)
            self._shards = Runs(self._reader, self.roster, self.width)
            self.reference_row = self._reference_row()
        except BaseException:
            self._reader.close()
            raise
        self._shard_rows = {}
        self._coverage = {}

    @property
    def file_descriptor(self) -> int:
        """File descriptor of the connection."""
        return self._reader.file_descriptor

    def reference_bytes(self) -> bytes:
        """The file of the pinned reference, as it was written."""
        ((content,),) = self._reader.rows("SELECT content FROM reference")
        return bytes(content)

    @cached_property
    def _listed(self) -> Listed:  # type: ignore[override]
        """Tokens, names and contents of all documents; the places of their vectors are only in `roster`."""
        return listed_rows(self._connection)

    def _check_all(self) -> None:
        """Check nothing: the server is responsible for its rows."""

    def is_newest(self) -> bool:
        """See `Snapshot.is_newest`."""
        return stored_settings(self.folder) == self._reader.settings

    def close(self) -> None:
        """End the transaction."""
        self._connection.close()
        self._reader.close()

    def _reference_row(self) -> ReferenceFile | None:
        rows = self._reader.rows("SELECT version, n_corpus, n_documents, length(content), digest FROM reference")
        if not rows:
            return None
        version, n_corpus, n_documents, size_bytes, digest = rows[0]
        return ReferenceFile(version, n_corpus, n_documents, reference_file(version), size_bytes, digest)

    @cached_property
    def reference(self) -> Reference:
        """The pinned reference; while there is none, a reference drawn from the current documents, version 0.

        Raises:
            IndexDamaged: the reference is not the one that was written.
        """
        row = self.reference_row
        if row is None:
            return self.draw_reference(0)
        content = self.reference_bytes()
        memory = mmap.mmap(-1, max(1, len(content)))
        memory.write(content)
        return parse_reference(memory, self.folder, Checksum(row.size_bytes, row.digest))

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """Documents in the order given; the coverage of an attached document is that of its vectors.

        Raises:
            IndexDamaged: a document is missing.
        """
        ids = self.roster.ids[positions].tolist()
        found = stored_documents(self._reader.rows, ids)
        if len(found) != len(set(ids)):
            raise IndexDamaged(f"{self.folder} has lost {len(set(ids)) - len(found)} documents; copy the index again")
        stored = zip(positions.tolist(), (found[one] for one in ids), strict=True)
        return [(document, self._coverage.get(position, coverage)) for position, (document, coverage) in stored]

    def totals(self) -> dict[str, int]:
        """Counts that `info` shows; the bytes are those of the tables."""
        ((n_sections,),) = self._reader.rows("SELECT count(*) FROM sections")
        tables = ", ".join(f"('{table}')" for table in _TABLES)
        ((n_bytes,),) = self._reader.rows(
            f"SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM (VALUES {tables}) AS t (name)"
        )
        return {**super().totals(), "sections": n_sections, "shard_bytes": n_bytes}


def stored_documents(
    rows: Callable[..., list[tuple[Any, ...]]], document_ids: Sequence[int]
) -> dict[int, tuple[Document, Coverage]]:
    """Documents by id; an id that does not exist is left out.

    Args:
        rows: executes a statement with its values and returns all rows.
        document_ids: of the documents.
    """
    ids = list(document_ids)
    sections: dict[int, list[Section]] = {one: [] for one in ids}
    for one, heading, path, *numbers in rows(_SECTIONS, ids):
        sections[one].append(Section(heading, tuple(json.loads(path)), *numbers))
    return {row[0]: _document(row, sections[row[0]]) for row in rows(_DOCUMENTS, ids)}


def _roster(reader: Reader) -> Roster:
    """Where the vectors of each document are in the runs."""
    rows = reader.rows("SELECT id, n_sections, n_chunks FROM documents ORDER BY id")
    ids, n_sections, n_chunks = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    runs = runs_of(n_chunks)
    first = np.searchsorted(runs, runs)  # position of the first document in the run of each document
    before = [np.cumsum(counts) - counts for counts in (n_sections, n_chunks)]
    first_chunk = np.cumsum(np.maximum(n_chunks, 1)) - np.maximum(n_chunks, 1) + 1
    return Roster(
        ids,
        shard=runs,
        document_row=np.arange(len(ids)) - first,
        section_row=before[0] - before[0][first],
        n_sections=n_sections,
        chunk_row=before[1] - before[1][first],
        first_chunk=first_chunk,
        n_chunks=n_chunks,
    )


def _document(row: tuple[Any, ...], sections: list[Section]) -> tuple[Document, Coverage]:
    _, doc_id, title, source, metadata, pages, text, n_read, n_total = row
    document = Document(doc_id, title, text, tuple(sections), json.loads(metadata), source, tuple(json.loads(pages)))
    return document, Coverage(n_read, n_total)
