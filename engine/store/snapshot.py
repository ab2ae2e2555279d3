"""The view that one reader has of an index: pinned on opening, independent of any writer.

Opening reads no document. It reads the tables that all documents share, compares them with their checksums, and maps
the files that they name. Locations are read at the first search, and rows are read when they are needed.

Documents are addressed here by position, 0 to N-1, in the order of their catalog ids.
Letters in shapes: N documents, R requested documents, D width.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import EngineError, IndexDamaged, IndexMismatch, command_line, damaged_catalog, faults_named, step
from engine.store import checks
from engine.store.catalog import (
    CATALOG_FILE,
    FILE_TABLES,
    NamedRow,
    ReferenceFile,
    StoredRows,
    catalog_faults,
    check_file_names,
    named_rows,
    newest,
    open_reader,
    read_manifest,
    read_opened,
    reading,
)
from engine.store.durable import Checksum
from engine.store.gathering import Gathering, Locations, check_locations, name_key, read_blocks
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
from engine.store.shards import ShardSet, coarse, map_file, shard_arrays
from engine.store.where import Work, has_key, json_path, parse_where
from engine.text.document import Document
from engine.text.segmentation import Coverage
from engine.words.likelihood import Statistics, TermStatistics, collect
from engine.words.wording import common_sentences, stock_wording

if TYPE_CHECKING:
    from engine.store.ann import AnnIndex
    from engine.store.postings import Postings

Positions = NDArray[np.int64]
Value = TypeVar("Value")
OPENINGS = 3  # attempts, if a writer replaces files meanwhile
_TEXTS_AT_ONCE = 200  # documents whose text is unpacked together
_WORKS = 64  # cited works whose documents are kept
_WORDS_AT_ONCE = 1_000  # documents whose term counts are added up together


@dataclass(frozen=True, slots=True)
class OpenGeneration:
    """A FAISS index that covers the chunks with ids up to `through_chunk`."""

    ann: AnnIndex
    through_chunk: int
    is_exact: bool
    postings: Postings | None = None  # of the same documents; None for an exact index, or without words


def _check_found(n_missing: int, what: str) -> None:
    """Refuse documents that have locations in the same transaction, and nothing else."""
    if n_missing:
        raise damaged_catalog(f"{n_missing} documents have no {what} in the catalog")


class Documents(Gathering, ABC):
    """The documents of one index, or of all its partitions.

    Methods that read single documents compare their rows with their checksums. Methods that read all documents
    compare the whole catalog first.
    """

    folder: Path
    meta: dict[str, Any]
    reference_row: ReferenceFile | None
    _last_position: tuple[str, int | None] | None = None

    @property
    @abstractmethod
    def parts(self) -> Sequence[IndexSnapshot]:
        """The snapshots of all partitions, in the order of their documents; of an index, this snapshot."""

    @abstractmethod
    def close(self) -> None:
        """Close the catalogs; a mapped file is released with the last array that views it."""

    @cached_property
    def bases(self) -> Positions:
        """(P,) position of the first document of each part."""
        return np.cumsum([0, *(len(part.locations) for part in self.parts)], dtype=np.int64)[:-1]

    def split(self, positions: Positions) -> Iterator[tuple[int, Positions, Positions]]:
        """Group documents (R,) by part: its number, places among the R, and positions in the part."""
        owners = np.searchsorted(self.bases, positions, side="right") - 1
        for owner in sorted(set(owners.tolist())):  # `np.unique` loads masked arrays
            places = np.flatnonzero(owners == owner)
            yield owner, places, positions[places] - self.bases[owner]

    def _read_all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement over all documents; of a single column, its values."""
        for part in self.parts:
            part._check_all()
        rows = [row for part in self.parts for row in part._read(statement, values)]
        return [value for (value,) in rows] if rows and len(rows[0]) == 1 else rows

    def _of(self, positions: Positions, read: Callable[[IndexSnapshot, Positions], Iterable[Value]]) -> list[Value]:
        """One value for each of some documents, in the order given."""
        values: dict[int, Value] = {}
        for number, places, positions_in_part in self.split(positions):
            values |= zip(places.tolist(), read(self.parts[number], positions_in_part), strict=True)
        return [values[place] for place in range(len(positions))]

    def _rows(self, positions: Positions) -> list[dict[str, Any]]:
        """The rows of documents, in the order given."""
        return self._of(positions, IndexSnapshot._own_rows)

    def position(self, doc_id: str) -> int | None:
        """Position of a document by its name; the last name is remembered, as a query by id looks it up twice."""
        last = self._last_position
        if last is None or last[0] != doc_id:
            chosen = np.flatnonzero(self.locations.names == np.uint64(name_key(doc_id)))
            names = self.doc_ids_of(chosen)
            self._last_position = last = doc_id, int(chosen[names.index(doc_id)]) if doc_id in names else None
        return last[1]

    def copies(self, content: str) -> list[str]:
        """The names of the documents that have a content hash, in order."""
        rows = self._rows(np.flatnonzero(self.locations.contents == np.uint64(content_key(content))))
        return sorted(str(row["doc_id"]) for row in rows if row["content_hash"] == content)

    def doc_ids(self) -> list[str]:
        """All names, in the order of positions."""
        return self._read_all("SELECT doc_id FROM documents ORDER BY id")

    def titles(self) -> list[tuple[str, str]]:
        """(doc_id, title) of all documents, in the order of positions."""
        return self._read_all("SELECT doc_id, title FROM documents ORDER BY id")

    def doc_ids_of(self, positions: Positions) -> list[str]:
        """The names of documents, in the order given."""
        return [str(row["doc_id"]) for row in self._rows(positions)]

    def content_hashes(self) -> dict[str, str]:
        """The hash of every document's content, by name."""
        return dict(self._read_all("SELECT doc_id, content_hash FROM documents"))

    def chunk_counts(self) -> dict[str, int]:
        """The number of chunks of every document, by name."""
        return dict(self._read_all("SELECT doc_id, n_chunks FROM documents"))

    def similar_names(self, doc_id: str, limit: int = 3) -> list[str]:
        """Names that contain the given one, or are most of it, regardless of case, for error messages."""
        statement = (
            "SELECT doc_id FROM documents WHERE length(?1) > 1 AND (instr(lower(doc_id), lower(?1)) "
            "OR 2 * length(doc_id) > length(?1) AND instr(lower(?1), lower(doc_id))) LIMIT ?2"
        )
        return self._read_all(statement, [doc_id, limit])[:limit]

    def matching(self, where: str) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter; see `engine.store.where`."""
        condition = parse_where(where)
        statement = f"SELECT id FROM documents WHERE {condition.sql}"
        return np.concatenate([part._among(statement, condition.values) for part in self.parts])

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """Documents in the order given; text and sections are unpacked when first read, also after closing.

        The coverage of a document with vectors in memory is theirs.
        """
        return self._of(positions, IndexSnapshot._own_documents)

    def totals(self) -> dict[str, int]:
        """Counts that `info` shows: documents, sections, chunks, tokens, failures, shards and their bytes."""
        counts = self._read_all(
            "SELECT coalesce(sum(tokens_read), 0), coalesce(sum(tokens_total), 0), "
            "(SELECT count(*) FROM sections), (SELECT count(*) FROM failures) FROM documents"
        )
        read, total, sections, failures = (sum(column) for column in zip(*counts, strict=True))
        return {
            "documents": self.n_documents,
            "encoded": int(np.count_nonzero(self.locations.n_chunks)),
            "sections": sections,
            "chunks": self.n_chunks,
            "tokens_read": read,
            "tokens_total": total,
            "shards": len(self.shard_rows),
            "shard_bytes": sum(row.size_bytes for row in self.shard_rows),
            "failures": failures,
        }

    def failures(self) -> list[tuple[str, str]]:
        """Documents that could not be indexed: (source, reason), by source."""
        return sorted(self._read_all("SELECT source, reason FROM failures"))

    @property
    def shard_rows(self) -> list[NamedRow]:
        """The catalog row of each shard."""
        return [row for part in self.parts for row in part._shard_rows.values()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.locations)

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return int(self.locations.n_chunks.sum())

    @property
    def is_complete(self) -> bool:
        """Whether all documents have vectors, or the index has none."""
        return not self.width or bool(self.has_vectors.all())

    def is_encoded(self, position: int) -> bool:
        """Whether a document has vectors."""
        return bool(self.has_vectors[position])

    def has_field(self, key: str, values: Collection[str | float] = ()) -> bool:
        """Whether any document has a value for a key of a filter, of a kind that compares with given values."""
        condition = has_key(key, values)
        return bool(self._read_all(f"SELECT 1 FROM documents WHERE {condition.sql} LIMIT 1", condition.values))

    def example(self, key: str) -> str:
        """A value of a metadata field, as JSON."""
        value = "iif(type IN ('true', 'false'), type, json_quote(value))"
        read = f"SELECT {value} FROM documents, json_each(metadata, ?) WHERE type != 'null' LIMIT 1"
        return str(self._read_all(read, (json_path(key),))[0])

    def field_names(self) -> list[str]:
        """The metadata fields of all documents, by name."""
        names = "SELECT DISTINCT key FROM documents, json_each(metadata) WHERE type != 'null'"
        return sorted(set(self._read_all(names)))

    @property
    def tokens(self) -> NDArray[np.int64]:
        """(N,) tokens of each document; an estimate for one that has no vectors."""
        return self.locations.tokens

    @property
    def missing_tokens(self) -> NDArray[np.int64]:
        """(N,) estimated tokens of each document without vectors; 0 for documents with vectors."""
        return np.where(self.has_vectors, 0, self.tokens)

    def _map_reference(self) -> None:
        pinned, home = self.reference_row, self.folder.parent if "partition" in self.meta else self.folder
        self._reference_path = home if pinned is None else home / pinned.file
        self._reference_file = None if pinned is None else map_file(self._reference_path)

    @property
    def has_partial_reference(self) -> bool:
        """Whether the reference was drawn while documents had no vectors."""
        return bool(self.meta.get("partial_reference", False))

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None until there is a document or a choice."""
        language: str | None = self.meta.get("language")
        return language

    @cached_property
    def reference(self) -> Reference:
        """The pinned reference; while there is none, one drawn from the documents of the snapshot, version 0."""
        row = self.reference_row
        if row is None:
            return self.draw_reference(0)
        return parse_reference(self._reference_file, self._reference_path, Checksum(row.size_bytes, row.digest))

    def draw_reference(self, version: int) -> Reference:
        """Draw a reference from the snapshot; reads the term counts of at most `STATISTICS_DOCUMENTS` documents.

        The sample ends before the first document of the draw that has no vectors: documents that
        were encoded because a query came near them are not a random sample.
        """
        order = sample_order(self.doc_ids())
        sample = order[: sample_size(self.locations.n_chunks[order])]
        sample = sample[: int(np.argmin(np.append(self.has_vectors[sample], False)))]
        rows, starts = self.chunk_rows(sample)
        counted = np.sort(order[:STATISTICS_DOCUMENTS])
        return Reference(
            version,
            self.n_documents,
            self.locations.contents[sample],
            coarse(rows),
            starts,
            self._statistics(counted),
            common_sentences(self._texts(order[: COMMON_DOCUMENTS if version else SAMPLE_DOCUMENTS])),
            stock_wording(self._texts(order[:SAMPLE_DOCUMENTS])),
        )

    def _texts(self, positions: Positions) -> Iterator[str]:
        for first in range(0, len(positions), _TEXTS_AT_ONCE):
            for document, _ in self.documents(positions[first : first + _TEXTS_AT_ONCE]):
                yield document.text

    def _statistics(self, positions: Positions) -> Statistics:
        if self.language is None:
            nothing = TermStatistics(np.empty(0, np.uint32), np.empty(0, np.uint32), 0)
            return Statistics(nothing, nothing)
        blocks = range(0, len(positions), _WORDS_AT_ONCE)
        return collect(self.words(positions[first : first + _WORDS_AT_ONCE]) for first in blocks)

    def is_fresh(self, through_chunk: int) -> NDArray[np.bool_]:
        """(N,) True for the documents whose chunks have ids above `through_chunk`, and for those attached since."""
        return (self.locations.first_chunk > through_chunk) | (self.locations.shard < 0)


class IndexSnapshot(Documents):
    """An index as it was when opened: documents, mapped shards, the ANN generation."""

    def __init__(self, folder: Path) -> None:
        """Open and pin an index; close it when done, or use it as a context manager.

        Raises:
            IndexMismatch: there is no index, or one of another format.
            IndexDamaged: the catalog is not what was written.
        """
        self.folder = folder
        catalog = folder / CATALOG_FILE
        if not catalog.exists():
            raise IndexMismatch(f"{folder} holds no index; make one: {command_line('index', folder, 'PATH...')}")
        self._is_checked = False  # whether all rows were compared with their checksums
        self._pin(catalog)
        for _ in range(OPENINGS - 1):
            if self._is_whole:
                break  # else a writer may have replaced a file between reading the catalog and mapping the file
            self._connection.close()
            self._pin(catalog)
        if not self.meta.keys() & {"encoder", "counters"}:
            self.close()
            fill = command_line("index", folder, "PATH...")
            raise IndexMismatch(f"{folder} was begun but holds nothing yet; fill it: {fill}")

    def _pin(self, catalog: Path) -> None:
        """Begin a read transaction, and map the files that the catalog names."""
        reported = checks.reported_commits(self.folder)
        self._connection = open_reader(catalog)
        try:
            with catalog_faults(catalog):
                self._read_shared(catalog)
                checks.check_commits(self.meta, reported, str(catalog))
        except EngineError:
            self._connection.close()
            raise
        self._shards = ShardSet(self.folder, self._shard_rows.values())
        self._coverage: dict[int, Coverage] = {}  # of documents with vectors in memory, by position
        # Mapped now: a writer may publish another reference and delete this file.
        self._map_reference()
        row = self.word_postings_row
        self._word_postings_file = None if row is None else map_file(self.folder / row.file)

    def _read_shared(self, catalog: Path) -> None:
        """Read the tables that do not grow with the documents."""
        self.meta: dict[str, Any] = checks.read_meta(self._connection, str(catalog))
        stored = read_opened(self._connection)
        checks.check_opened(self._connection, stored, str(catalog))
        self.width = int((self.meta.get("encoder") or {"width": 0})["width"])
        self._shard_rows: dict[int, NamedRow] = {row.id: row for row in named_rows(stored, "shards")}
        self.generation_row = newest(stored, "generations")
        self.postings_row = newest(stored, "postings")
        self.word_postings_row = newest(stored, "word_postings")
        self.reference_row = self._pinned_reference(stored)
        named = [row.file for table in FILE_TABLES for row in named_rows(stored, table)]
        check_file_names([*named, *([] if self.reference_row is None else [self.reference_row.file])], str(catalog))

    def _check_all(self) -> None:
        """Compare all rows with their checksums, once."""
        if self._is_checked:
            return
        catalog = str(self.folder / CATALOG_FILE)
        with faults_named(catalog):
            checks.check_catalog(self._connection, catalog)
        self._is_checked = True

    @property
    def _is_whole(self) -> bool:
        """Whether all files that are mapped on opening existed."""
        mapped = [(self.reference_row, self._reference_file), (self.word_postings_row, self._word_postings_file)]
        return self._shards.is_whole and all(row is None or file is not None for row, file in mapped)

    def _pinned_reference(self, stored: StoredRows) -> ReferenceFile | None:
        """The reference in force; that of a partition is in its manifest."""
        if "partition" in self.meta:
            return read_manifest(self.folder.parent).reference
        row = newest(stored, "reference")
        return None if row is None else ReferenceFile(**row._asdict())

    def close(self) -> None:
        """Close the catalog; a mapped file is released with the last array that views it."""
        self._connection.close()

    def is_newest(self) -> bool:
        """Whether nothing was committed since this was opened.

        Reads about ten rows.
        """
        with reading(self.folder / CATALOG_FILE) as now:
            return checks.table_checks(now) == checks.table_checks(self._connection)

    @property
    def parts(self) -> Sequence[IndexSnapshot]:
        """See `Documents.parts`."""
        return (self,)

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with catalog_faults(self.folder / CATALOG_FILE):
            return self._connection.execute(statement, values).fetchall()

    def _among(self, statement: str, values: Sequence[Any]) -> NDArray[np.bool_]:
        """(N,) True for the documents whose catalog ids a statement returns."""
        self._check_all()
        ids = self._read(statement, [*map(self._bound, values)])
        return np.isin(self.locations.ids, np.array(ids, np.int64))

    def _bound(self, value: Any) -> Any:  # noqa: ANN401
        """A parameter of a condition as SQLite takes it; reads all texts for a work that was not looked up before."""
        if not isinstance(value, Work):
            return value
        if value.name not in self._citing:
            from engine.references.extraction import citations_of, named_works  # few filters need their patterns

            works, cite = named_works(value.name), []
            for text in self._texts(np.arange(self.n_documents)):
                step()
                cite.append(bool(citations_of(works, text)))
            if len(self._citing) >= _WORKS:
                del self._citing[next(iter(self._citing))]
            self._citing[value.name] = json.dumps(self.locations.ids[cite].tolist())
        return self._citing[value.name]

    @cached_property
    def _citing(self) -> dict[str, str]:
        """The ids of the documents that cite a work, as JSON, of the last works that were looked up."""
        return {}

    @cached_property
    def locations(self) -> Locations:
        """Where the vectors of each document are, read at first use."""
        connection, place = self._connection, str(self.folder / CATALOG_FILE)
        with faults_named(place):
            checks.check_location_table(connection, place)
            locations = read_blocks(connection, place)
        check_locations(locations, self._shard_rows, place)
        return locations

    def _own_rows(self, positions: Positions) -> list[dict[str, Any]]:
        ids: list[int] = self.locations.ids[positions].tolist()
        with faults_named():
            rows = checks.stored_rows(self._connection, ids)
        _check_found(len(set(ids)) - len(rows), "row")
        return [rows[document_id] for document_id in ids]

    def _own_documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        documents = checks.stored_documents(self._connection, self.locations.ids[positions].tolist())
        _check_found(len(positions) - len(documents), "text")
        stored = zip(positions.tolist(), documents, strict=True)
        return [(document, self._coverage.get(position, coverage)) for position, (document, coverage) in stored]

    def with_vectors(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> Self:
        """The same snapshot with vectors, in memory, of documents that have none; threads that read this one go on.

        They are scored like documents that are newer than the generation: exactly. Nothing is written.
        """
        other = copy(self)
        number = self._shards.add(shard_arrays(encoded, self.words(positions, apart=True)))
        n_chunks = np.array([len(document.chunks) for document in encoded])
        n_sections = np.array([len(document.sections) for document in encoded])
        other.locations = self.locations.moved(
            positions,
            tokens=np.array([document.coverage.tokens_total for document in encoded]),
            shard=np.full(len(positions), number),
            document_row=np.arange(len(positions)),
            section_row=np.cumsum(n_sections) - n_sections,
            n_sections=n_sections,
            chunk_row=np.cumsum(n_chunks) - n_chunks,
            n_chunks=n_chunks,
        )
        coverage = (document.coverage for document in encoded)
        other._coverage = self._coverage | dict(zip(positions.tolist(), coverage, strict=True))
        other.__dict__.pop("document_vectors", None)
        return other

    @cached_property
    def generation(self) -> OpenGeneration | None:
        """The published generation, its file checked and mapped at first use; None while there is none.

        Also None if a writer published another generation before that first use: the file is then
        deleted, and an exact scan takes its place.
        """
        row = self.generation_row
        if row is None:
            return None
        from engine.store.ann import AnnIndex  # loads FAISS, which an index without vectors does not need

        written = Checksum(row.size_bytes, row.digest)
        files = [row.file, *([] if self.postings_row is None else [self.postings_row.file])]
        try:
            ann = AnnIndex.open(
                self.folder / row.file, written, n_vectors=row.n_vectors, width=self.width, nprobe=row.nprobe
            )
            words = self.postings_row
            postings = self._postings(words) if words is not None and words.generation_id == row.id else None
            return OpenGeneration(ann, row.through_chunk, bool(row.is_exact), postings)
        except IndexDamaged:
            # Checked after the error: a file can be deleted at any moment before it is open.
            if all((self.folder / file).exists() for file in files) or not self._is_superseded(row.id):
                raise
            return None

    def _postings(self, row: NamedRow, content: mmap | None = None) -> Postings:
        """Those that a row names, in a file that was mapped before, or is mapped now."""
        from engine.store.postings import Postings

        path = self.folder / row.file
        return Postings.parse(content or map_file(path), path, Checksum(row.size_bytes, row.digest))

    @cached_property
    def word_postings(self) -> Postings | None:
        """Postings over documents without vectors that no generation covers; None if they are few."""
        row = self.word_postings_row
        return None if row is None else self._postings(row, self._word_postings_file)

    def _is_superseded(self, generation: int) -> bool:
        with reading(self.folder / CATALOG_FILE) as now:
            return now.execute("SELECT 1 FROM generations WHERE id = ?", [generation]).fetchone() is None
