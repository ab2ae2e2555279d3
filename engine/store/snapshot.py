"""What one reader sees of an index: pinned when it is opened, whatever a writer does meanwhile.

Documents are addressed here by position, 0 to N-1, in the order of their catalog ids.
Letters in shapes: N documents, C chunks of those asked for, D width.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, String, func, inspect, select, type_coerce
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import InstrumentedAttribute

from engine.document import Coverage, Document
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import IndexDamaged, IndexMismatch
from engine.store.ann import AnnIndex
from engine.store.catalog import (
    CATALOG_FILE,
    DocumentRow,
    FailureRow,
    GenerationRow,
    PostingsRow,
    ReferenceRow,
    SectionRow,
    ShardDigestRow,
    ShardRow,
    Table,
    connect,
    read_meta,
)
from engine.store.document_index import DocumentIndex
from engine.store.documents import stored_documents
from engine.store.durable import Checksum
from engine.store.halves import as_float32
from engine.store.postings import Postings
from engine.store.reference import (
    COMMON_DOCUMENTS,
    SAMPLE_DOCUMENTS,
    STATISTICS_DOCUMENTS,
    Reference,
    content_key,
    parse_reference,
    sample_order,
    sample_size,
)
from engine.store.roster import read_roster
from engine.store.seal import check_seal
from engine.store.shards import Shard, ShardSet, shard_arrays
from engine.store.tensors import map_file
from engine.store.where import parse_where
from engine.words.common_sentences import common_sentences
from engine.words.counts import WordTables, join
from engine.words.statistics import Statistics, TermStatistics, collect

Positions = NDArray[np.int64]
_OPENINGS = 3
_IDS_PER_STATEMENT = 1_000
_TEXTS_AT_ONCE = 200  # documents whose text is unpacked together
_WORDS_AT_ONCE = 1_000  # documents whose term counts are added up together


@dataclass(frozen=True, slots=True)
class OpenGeneration:
    """A FAISS index, and which chunks it covers: those with ids up to `through_chunk`."""

    ann: AnnIndex
    through_chunk: int
    is_exact: bool
    postings: Postings | None = None  # of the same documents; None for an exact one, or without words


class Snapshot:
    """An index as it was when opened: documents, mapped shards, the ANN generation."""

    def __init__(self, folder: Path) -> None:
        """Open and pin an index; close it when done, or use it as a context manager.

        Raises:
            IndexMismatch: there is no index, or one of another version.
            IndexDamaged: the catalog is not what was written.
        """
        self.folder = folder
        catalog = folder / CATALOG_FILE
        if not catalog.exists():
            raise IndexMismatch(f"{folder} holds no index; make one: longmatch index {folder} PATH...")
        check_seal(catalog)
        self._last_position: tuple[str, int | None] | None = None
        for _ in range(_OPENINGS):
            self._pin(catalog)
            if self._shards.is_whole:
                break  # else a writer may have compacted between reading the catalog and mapping its shards
        if not self.meta.keys() & {"encoder", "counters"}:
            self.close()
            raise IndexMismatch(f"{folder} was begun but holds nothing yet; fill it: longmatch index {folder} PATH...")

    def _pin(self, catalog: Path) -> None:
        """Begin a read transaction, and map what it names."""
        self._connection: Connection = connect(catalog, read_only=True).connect()
        try:
            self.meta: dict[str, Any] = read_meta(self._connection)
            self.roster = read_roster(self._connection)
            self._shard_rows = {row.id: row for row in self._connection.execute(select(ShardRow.__table__))}
            digests = _read_digests(self._connection)
            self.generation_row = self._connection.execute(
                select(GenerationRow.__table__).order_by(GenerationRow.id.desc()).limit(1)
            ).first()
            self.postings_row = self._newest(PostingsRow, PostingsRow.generation_id)
            self.reference_row = self._newest(ReferenceRow, ReferenceRow.version)
        except (DatabaseError, sqlite3.DatabaseError) as error:
            self._connection.close()
            reason = getattr(error, "orig", error)
            raise IndexDamaged(f"{catalog} cannot be read ({reason}); check it: longmatch verify INDEX") from error
        except IndexMismatch:
            self._connection.close()
            raise
        written = {number: (row.file, Checksum(row.size_bytes, row.digest)) for number, row in self._shard_rows.items()}
        self._shards = ShardSet(self.folder, written, digests)
        self._attached = np.zeros(len(self.roster), bool)
        # Mapped now: a writer may publish another reference and delete this file.
        row = self.reference_row
        self._reference_file = None if row is None else map_file(self.folder / row.file)

    def _newest(self, table: type[Table], key: InstrumentedAttribute[int]) -> Row[Any] | None:
        """The last row of a table; None where an earlier version made the catalog without it."""
        if not inspect(self._connection).has_table(table.__tablename__):
            return None
        return self._connection.execute(select(table.__table__).order_by(key.desc()).limit(1)).first()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog; the mapped files go with the last array that looks into them."""
        self._connection.close()

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.roster)

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return int(self.roster.n_chunks.sum())

    @property
    def width(self) -> int:
        """D; 0 for an index that holds words alone and is bound to no encoder."""
        encoder = self.meta.get("encoder")
        return int(encoder["width"]) if encoder else 0

    @property
    def has_vectors(self) -> NDArray[np.bool_]:
        """(N,) True for the documents that are encoded; the others are found by their words."""
        return self.roster.n_chunks > 0

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """(N,) tokens of each document; an estimate for one that has no vectors."""
        counts = self._connection.execute(select(DocumentRow.tokens_total).order_by(DocumentRow.id)).scalars()
        return np.fromiter(counts, np.int64, self.n_documents)

    @property
    def missing_tokens(self) -> NDArray[np.int64]:
        """(N,) tokens of each document that has no vectors, about; 0 for one that has."""
        return np.where(self.has_vectors, 0, self.tokens)

    def attach(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> None:
        """Give vectors, in memory, to documents that have none in this snapshot. Nothing is written.

        They are scored like documents that came after the generation: exactly.

        Args:
            positions: documents without vectors.
            encoded: the vectors of each.
        """
        words = self.words(positions) if self.language is not None else None
        number = self._shards.add(shard_arrays(encoded, words))
        n_chunks = np.array([len(one.chunks) for one in encoded])
        n_sections = np.array([len(one.sections) for one in encoded])
        self.roster = self.roster.moved(
            positions,
            shard=np.full(len(positions), number),
            document_row=np.arange(len(positions)),
            section_row=np.cumsum(n_sections) - n_sections,
            n_sections=n_sections,
            chunk_row=np.cumsum(n_chunks) - n_chunks,
            n_chunks=n_chunks,
        )
        self._attached[positions] = True
        self.tokens[positions] = [one.coverage.tokens_total for one in encoded]
        for derived in ("document_index", "document_vectors"):
            self.__dict__.pop(derived, None)

    @cached_property
    def generation(self) -> OpenGeneration | None:
        """The published generation, its file checked and mapped at first use; None while there is none.

        None, too, if a writer published another one before that first use: the file
        is gone then, and an exact scan answers the same question.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        row = self.generation_row
        if row is None:
            return None
        files = [row.file, *([] if self.postings_row is None else [self.postings_row.file])]
        if not all((self.folder / file).exists() for file in files) and self._is_superseded(row.id):
            return None
        written = Checksum(row.size_bytes, row.digest)
        ann = AnnIndex.open(
            self.folder / row.file, written, n_vectors=row.n_vectors, width=self.width, nprobe=row.nprobe
        )
        return OpenGeneration(ann, row.through_chunk, row.is_exact, self._postings(row.id))

    def _postings(self, generation: int) -> Postings | None:
        row = self.postings_row
        if row is None or row.generation_id != generation:
            return None
        return Postings.open(self.folder / row.file, Checksum(row.size_bytes, row.digest))

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None where an earlier version wrote the index, without words."""
        found: str | None = self.meta.get("language")
        return found

    @cached_property
    def reference(self) -> Reference:
        """The pinned reference; while there is none, one that is drawn from the documents as they are, version 0.

        Raises:
            IndexDamaged: its file is not the one that was written.
        """
        row = self.reference_row
        if row is None:
            return self.draw_reference(0)
        return parse_reference(self._reference_file, self.folder / row.file, Checksum(row.size_bytes, row.digest))

    def draw_reference(self, version: int) -> Reference:
        """Draw a reference from the documents of the snapshot; reads the term counts of all, up to a limit.

        The sample ends before the first document of the draw that has no vectors: those that have
        some because a query came near them are no random sample.
        """
        order = sample_order(self.doc_ids())
        sample = order[: sample_size(self.roster.n_chunks[order])]
        sample = sample[: int(np.argmin(np.append(self.has_vectors[sample], False)))]
        rows, starts = self.chunk_rows(sample)
        counted = np.sort(order[:STATISTICS_DOCUMENTS])
        return Reference(
            version,
            self.n_documents,
            self.content_keys(sample),
            self.document_rows(sample),
            rows,
            starts,
            self._statistics(counted),
            self._common_sentences(order[: COMMON_DOCUMENTS if version else SAMPLE_DOCUMENTS]),
        )

    def _common_sentences(self, positions: Positions) -> NDArray[np.uint64]:
        blocks = range(0, len(positions), _TEXTS_AT_ONCE)
        return common_sentences(
            document.text
            for first in blocks
            for document, _ in self.documents(positions[first : first + _TEXTS_AT_ONCE])
        )

    def _statistics(self, positions: Positions) -> Statistics:
        if self.language is None:
            nothing = TermStatistics(np.empty(0, np.uint32), np.empty(0, np.uint32), 0)
            return Statistics(nothing, nothing)
        blocks = range(0, len(positions), _WORDS_AT_ONCE)
        return collect(self.words(positions[first : first + _WORDS_AT_ONCE]) for first in blocks)

    def words(self, positions: Positions) -> WordTables:
        """The term counts of documents, in the order given; the index has a `language`."""
        parts, members = [], []
        for number, of_shard in self._by_shard(positions):
            tables = self._shards.words(number)
            if tables is None:
                raise IndexDamaged(f"shard {number} holds no term counts; repair the index: longmatch repair INDEX")
            parts.append(tables.of(self.roster.document_row[positions[of_shard]]))
            members.append(of_shard)
        joined = join(parts)
        return joined.of(np.argsort(np.concatenate(members))) if len(parts) > 1 else joined

    def _is_superseded(self, generation: int) -> bool:
        with connect(self.folder / CATALOG_FILE, read_only=True).connect() as now:
            return now.execute(select(GenerationRow.id).where(GenerationRow.id == generation)).first() is None

    def is_fresh(self, through_chunk: int) -> NDArray[np.bool_]:
        """(N,) True for the documents whose chunks have ids above `through_chunk`, and for those attached since."""
        return (self.roster.first_chunk > through_chunk) | self._attached

    @cached_property
    def document_index(self) -> DocumentIndex:
        """The document vectors, read from the shards at first use."""
        return DocumentIndex(self.document_rows(np.arange(self.n_documents)))

    def document_rows(self, positions: Positions) -> NDArray[np.float16]:
        """The document vectors (R, D) of documents, in the order given; zeros for one that is not encoded."""
        rows = np.zeros((len(positions), self.width), np.float16)
        at = np.flatnonzero(self.has_vectors[positions])
        for number, of_shard in self._by_shard(positions[at]):
            members = at[of_shard]
            rows[members] = self._shards.documents(number)[self.roster.document_row[positions[members]]]
        return rows

    @cached_property
    def document_vectors(self) -> Vectors:
        """(N, D) float32, unit rows up to half precision."""
        return as_float32(self.document_index.rows)

    def chunk_vectors(self, positions: Positions) -> tuple[Vectors, NDArray[np.int64]]:
        """The chunk vectors of documents, one document after another.

        Args:
            positions: documents, in any order.

        Returns:
            (C, D) float32 rows, and for each document the row at which it starts.
        """
        half, starts = self.chunk_rows(positions)
        return as_float32(half), starts

    def chunk_rows(self, positions: Positions) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
        """The same as float16, as the shards hold them."""
        counts = self.roster.n_chunks[positions]
        ends = np.cumsum(counts)
        rows, numbers = self.roster.chunk_row[positions], self.roster.shard[positions]
        half = np.empty((int(ends[-1]) if len(ends) else 0, self.width), np.float16)
        # Documents that follow each other in a shard too are one stretch of it.
        is_next = (numbers[1:] == numbers[:-1]) & (rows[1:] == rows[:-1] + counts[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~is_next])[: len(positions)])
        begins = (ends - counts)[first]
        stretches = zip(
            numbers[first].tolist(),
            rows[first].tolist(),
            begins.tolist(),
            np.append(begins[1:], len(half)).tolist(),
            strict=False,  # of no documents there is an end and no beginning
        )
        for number, row, begin, end in stretches:
            if begin == end:
                continue  # of documents without vectors
            half[begin:end] = self._shards.chunks(number)[row : row + end - begin]
        return half, ends - counts

    def chunks_by_id(self, ids: NDArray[np.int64], positions: Positions) -> Vectors:
        """The vectors (C, D) of single chunks, given their ids and the documents they belong to."""
        half = np.empty((len(ids), self.width), np.float16)
        rows = self.roster.chunk_row[positions] + ids - self.roster.first_chunk[positions]
        for number, members in self._by_shard(positions):
            half[members] = self._shards.chunks(number)[rows[members]]
        return as_float32(half)

    def spans(self, position: int) -> NDArray[np.int32]:
        """(C, 4) section, start, stop and tokens of the chunks of one document."""
        first = int(self.roster.chunk_row[position])
        spans = self._shards.spans(int(self.roster.shard[position]))
        return spans[first : first + int(self.roster.n_chunks[position])]

    def section_vectors(self, position: int) -> Vectors:
        """(S, D) float32 section vectors of one document."""
        first, count = (int(column[position]) for column in (self.roster.section_row, self.roster.n_sections))
        sections = self._shards.sections(int(self.roster.shard[position]))
        return as_float32(sections[first : first + count])

    def _by_shard(self, positions: Positions) -> list[tuple[int, NDArray[np.int64]]]:
        """Group documents: (shard number, indices into `positions`)."""
        numbers = self.roster.shard[positions]
        order = np.argsort(numbers, kind="stable")
        found, first = np.unique(numbers[order], return_index=True)
        return list(zip(found.tolist(), np.split(order, first[1:]), strict=True)) if len(positions) else []

    def shard(self, number: int) -> Shard:
        """All arrays of a shard; see `ShardSet`."""
        return self._shards[number]

    def chunks_of(self, documents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each chunk id from 0 on, whether it belongs to one of the given documents, (N,) bool."""
        first, counts = self.roster.first_chunk[documents], self.roster.n_chunks[documents]
        steps = np.zeros(int((first + counts).max(initial=0)) + 1, np.int8)
        steps[first] += 1  # ids are used once, so no two documents begin, and no two end, at the same one
        steps[first + counts] -= 1
        belongs: NDArray[np.bool_] = np.cumsum(steps, dtype=np.int8).astype(bool)
        return belongs

    def documents_of_chunks(self, chunk_ids: NDArray[np.int64]) -> Positions:
        """Position of the document that each chunk belongs to; -1 for removed ones and id -1."""
        if not len(self.roster):
            return np.full(chunk_ids.shape, -1)
        order, firsts = self._by_first_chunk
        at = np.maximum(np.searchsorted(firsts, chunk_ids, side="right") - 1, 0)
        positions = order[at]
        inside = (chunk_ids >= firsts[at]) & (chunk_ids < firsts[at] + self.roster.n_chunks[positions])
        return np.where(inside, positions, -1)

    @cached_property
    def _by_first_chunk(self) -> tuple[Positions, NDArray[np.int64]]:
        order = np.argsort(self.roster.first_chunk)
        return order, self.roster.first_chunk[order]

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

    def doc_ids_of(self, positions: Positions) -> list[str]:
        """The names of documents, in the order given."""
        ids = self.roster.ids[positions].tolist()
        return _in_order(self._connection, DocumentRow.doc_id, ids)

    def content_keys(self, positions: Positions) -> NDArray[np.uint64]:
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

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """Documents in the order asked; text and sections are unpacked when first read, also after closing."""
        return stored_documents(self._connection, self.roster.ids[positions].tolist())

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
            "documents": self.n_documents,
            "encoded": int(np.count_nonzero(self.has_vectors)),
            "sections": int(sections),
            "chunks": self.n_chunks,
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


def _read_digests(connection: Connection) -> dict[int, str]:
    if not inspect(connection).has_table(ShardDigestRow.__tablename__):
        return {}  # an earlier version wrote this index
    columns = ShardDigestRow.shard_id, type_coerce(ShardDigestRow.digests, String)  # decoded one by one, when needed
    return {row[0]: row[1] for row in connection.execute(select(*columns))}


def _in_order(connection: Connection, column: InstrumentedAttribute[str], ids: Sequence[int]) -> list[str]:
    """A column of documents, in the order of their catalog ids."""
    found: dict[int, str] = {}
    for first in range(0, len(ids), _IDS_PER_STATEMENT):
        block = ids[first : first + _IDS_PER_STATEMENT]
        rows = connection.execute(select(DocumentRow.id, column).where(DocumentRow.id.in_(block)))
        found |= {row[0]: row[1] for row in rows}
    return [found[one] for one in ids]


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate `start, start + 1, ..., start + count - 1` of each pair, without a loop."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + counts, counts)
