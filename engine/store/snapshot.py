"""The view that one reader has of an index: pinned on opening, independent of any writer.

Documents are addressed here by position, 0 to N-1, in the order of their catalog ids.
Letters in shapes: N documents, C chunks of those asked for, D width.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, String, inspect, select, type_coerce
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import InstrumentedAttribute

from engine.document import Coverage, Document
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexDamaged, IndexMismatch
from engine.store.ann import AnnIndex
from engine.store.bounds import check_file_names, check_roster
from engine.store.catalog import (
    CATALOG_FILE,
    DocumentRow,
    GenerationRow,
    PostingsRow,
    ReferenceRow,
    ShardDigestRow,
    ShardRow,
    Table,
    WordPostingsRow,
    connect,
    read_meta,
)
from engine.store.checks import check_catalog
from engine.store.coarse import coarse
from engine.store.durable import Checksum
from engine.store.gathering import Gathering
from engine.store.listing import Listing
from engine.store.manifest import ReferenceFile, read_manifest
from engine.store.postings import Postings
from engine.store.reference import (
    COMMON_DOCUMENTS,
    SAMPLE_DOCUMENTS,
    STATISTICS_DOCUMENTS,
    Reference,
    parse_reference,
    sample_order,
    sample_size,
)
from engine.store.roster import read_roster
from engine.store.seal import check_seal
from engine.store.shards import ShardSet, shard_arrays
from engine.store.tensors import map_file
from engine.words.common_sentences import common_sentences
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


class Snapshot(Listing, Gathering):
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
        is_sealed = check_seal(catalog)
        for _ in range(_OPENINGS):
            self._pin(catalog, is_sealed=is_sealed)
            if self._shards.is_whole:
                break  # else a writer may have compacted between reading the catalog and mapping its shards
        if not self.meta.keys() & {"encoder", "counters"}:
            self.close()
            raise IndexMismatch(f"{folder} was begun but holds nothing yet; fill it: longmatch index {folder} PATH...")

    def _pin(self, catalog: Path, *, is_sealed: bool) -> None:
        """Begin a read transaction, and map what it names."""
        self._connection: Connection = connect(catalog, read_only=True).connect()
        try:
            self.meta: dict[str, Any] = read_meta(self._connection)
            if not is_sealed:
                check_catalog(self._connection, self.meta, str(catalog))
            self.width = int((self.meta.get("encoder") or {"width": 0})["width"])
            self.roster = read_roster(self._connection)
            self._shard_rows = {row.id: row for row in self._connection.execute(select(ShardRow.__table__))}
            digests = _read_digests(self._connection)
            self.generation_row = self._connection.execute(
                select(GenerationRow.__table__).order_by(GenerationRow.id.desc()).limit(1)
            ).first()
            self.postings_row = self._newest(PostingsRow, PostingsRow.generation_id)
            self.word_postings_row = self._newest(WordPostingsRow, WordPostingsRow.id)
            self.reference_row = self._pinned_reference()
            derived = (self.generation_row, self.postings_row, self.word_postings_row, self.reference_row)
            named = [row.file for row in (*self._shard_rows.values(), *derived) if row is not None]
            check_file_names(named, str(catalog))
            check_roster(self.roster, self._shard_rows, str(catalog))
        except (DatabaseError, sqlite3.DatabaseError) as error:
            self._connection.close()
            reason = getattr(error, "orig", error)
            raise IndexDamaged(f"{catalog} cannot be read ({reason}); check it: longmatch verify INDEX") from error
        except (IndexMismatch, IndexDamaged):
            self._connection.close()
            raise
        written = {number: (row.file, Checksum(row.size_bytes, row.digest)) for number, row in self._shard_rows.items()}
        self._shards = ShardSet(self.folder, written, digests)
        self._attached = np.zeros(len(self.roster), bool)
        self._coverage: dict[int, Coverage] = {}  # of attached documents, by position
        # Mapped now: a writer may publish another reference and delete this file.
        self._map_reference()
        row = self.word_postings_row
        self._word_postings_file = None if row is None else map_file(self.folder / row.file)

    def _pinned_reference(self) -> ReferenceFile | None:
        """The reference in force; that of a partition is in its manifest."""
        if "partition" in self.meta:
            return read_manifest(self.folder.parent).reference
        row = self._newest(ReferenceRow, ReferenceRow.version)
        return None if row is None else ReferenceFile(**row._mapping)

    def _map_reference(self) -> None:
        pinned, home = self.reference_row, self.folder.parent if "partition" in self.meta else self.folder
        self._reference_path = home if pinned is None else home / pinned.file
        self._reference_file = None if pinned is None else map_file(self._reference_path)

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
    def parts(self) -> Sequence[Snapshot]:
        """The snapshots whose documents these are, one after another: of each partition, or itself."""
        return (self,)

    def split(self, positions: Positions) -> Iterator[tuple[Snapshot, NDArray[np.int64], Positions]]:
        """Group documents (R,) by part: the part, places among the R, and positions in the part."""
        yield self, np.arange(len(positions)), positions

    @property
    def shard_rows(self) -> list[Row[Any]]:
        """What the catalog says of each shard."""
        return list(self._shard_rows.values())

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.roster)

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return int(self.roster.n_chunks.sum())

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
        self._coverage.update(zip(positions.tolist(), (one.coverage for one in encoded), strict=True))
        self.tokens[positions] = [one.coverage.tokens_total for one in encoded]
        for derived in ("document_index", "document_vectors"):
            self.__dict__.pop(derived, None)

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """As stored; the coverage of an attached document is that of its vectors."""
        stored = zip(positions.tolist(), super().documents(positions), strict=True)
        return [(document, self._coverage.get(position, coverage)) for position, (document, coverage) in stored]

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

    @cached_property
    def word_postings(self) -> Postings | None:
        """Postings over documents without vectors that no generation covers; None where few are without.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        row = self.word_postings_row
        if row is None:
            return None
        written = Checksum(row.size_bytes, row.digest)
        return Postings.parse(self._word_postings_file, self.folder / row.file, written)

    @property
    def has_partial_reference(self) -> bool:
        """Whether the reference was drawn while documents had no vectors."""
        return bool(self.meta.get("partial_reference", False))

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None where an earlier version wrote the index, without words."""
        found: str | None = self.meta.get("language")
        return found

    @property
    def counts_titles(self) -> bool:
        """Whether terms of titles count more often; not where an earlier version wrote the index."""
        return bool(self.meta.get("counts_titles", False))

    @cached_property
    def reference(self) -> Reference:
        """The pinned reference; while there is none, one that is drawn from the documents as they are, version 0.

        Raises:
            IndexDamaged: its file is not the one that was written.
        """
        row = self.reference_row
        if row is None:
            return self.draw_reference(0)
        return parse_reference(self._reference_file, self._reference_path, Checksum(row.size_bytes, row.digest))

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
            coarse(rows),
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

    def _is_superseded(self, generation: int) -> bool:
        with connect(self.folder / CATALOG_FILE, read_only=True).connect() as now:
            return now.execute(select(GenerationRow.id).where(GenerationRow.id == generation)).first() is None

    def is_fresh(self, through_chunk: int) -> NDArray[np.bool_]:
        """(N,) True for the documents whose chunks have ids above `through_chunk`, and for those attached since."""
        return (self.roster.first_chunk > through_chunk) | self._attached


def _read_digests(connection: Connection) -> dict[int, str]:
    if not inspect(connection).has_table(ShardDigestRow.__tablename__):
        return {}  # an earlier version wrote this index
    columns = ShardDigestRow.shard_id, type_coerce(ShardDigestRow.digests, String)  # decoded one by one, when needed
    return {row[0]: row[1] for row in connection.execute(select(*columns))}
