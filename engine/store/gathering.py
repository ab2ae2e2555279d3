"""Where the vectors and term counts of each document are, and their gathering from mapped shards by position.

Locations are stored as blocks, written in the transaction that changes the rows. Each has a checksum, and there is one
over all of them (`engine.store.checks`), so a document that is in no block is not in the index. Names and contents are
there as keys of 64 bits, by which a document is found, or proven to be absent, without a search in the catalog.

Letters in shapes: N documents, R requested documents, C chunks of these, D width.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import damaged_catalog
from engine.scoring.evidence import Matches
from engine.store.catalog import NamedRow
from engine.store.reference import content_key
from engine.store.shards import Shard, ShardSet, as_float32
from engine.text.segmentation import Chunk, Coverage
from engine.words.apart import ranges
from engine.words.counts import KeptTable, PackedWords, TermCounts, WordTables, gather, kept_table, unpacked
from engine.words.likelihood import InvertedTable, inverted


@dataclass(frozen=True, slots=True)
class Locations:
    """Values of all documents, known without reading their rows; all arrays are (N,), in the order of catalog ids.

    Most say where the vectors of each document are.
    """

    ids: NDArray[np.int64]
    shard: NDArray[np.int64]
    document_row: NDArray[np.int64]
    section_row: NDArray[np.int64]
    n_sections: NDArray[np.int64]
    chunk_row: NDArray[np.int64]
    first_chunk: NDArray[np.int64]
    n_chunks: NDArray[np.int64]
    tokens: NDArray[np.int64]  # an estimate for a document without vectors
    contents: NDArray[np.uint64]  # see `engine.store.reference.content_key`
    names: NDArray[np.uint64]  # see `name_key`

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, positions: NDArray[np.int64]) -> Locations:
        """Those of some documents, in the order given."""
        return Locations(*(getattr(self, name)[positions] for name in LOCATION_COLUMNS))

    def moved(self, positions: NDArray[np.int64], **columns: NDArray[np.int64]) -> Locations:
        """A copy with other values (R,) in some columns of R documents."""
        changed = {name: getattr(self, name).copy() for name in columns}
        for name, values in columns.items():
            changed[name][positions] = values
        return replace(self, **changed)


LOCATION_COLUMNS = tuple(column.name for column in fields(Locations))
BLOCK_IDS = 512  # catalog ids of one block
_DAMAGED = "the location table of {place} is not what was written"


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
            row = (block, table.shape[1], arrays, checksum_of(arrays))
            connection.execute("INSERT INTO location_blocks VALUES (?, ?, ?, ?)", row)


def read_blocks(connection: sqlite3.Connection, place: str) -> Locations:
    """All documents by their blocks, as the open transaction sees them.

    Args:
        connection: to a catalog whose table of blocks was compared with its checksum.

    Raises:
        IndexDamaged: a block is not what was written.
    """
    statement = "SELECT n_documents, arrays, checksum FROM location_blocks ORDER BY block"
    n_columns = len(LOCATION_COLUMNS)
    tables = [np.empty((n_columns, 0), np.int64)]
    for n_documents, arrays, check in connection.execute(statement):
        if not isinstance(arrays, bytes) or checksum_of(arrays) != check or len(arrays) != n_documents * n_columns * 8:
            raise damaged_catalog(_DAMAGED.format(place=place))
        tables.append(np.frombuffer(arrays, "<i8").reshape(n_columns, -1))
    table = np.concatenate(tables, axis=1)
    return Locations(*table[:-2], *table[-2:].view(np.uint64))


def check_blocks(connection: sqlite3.Connection, place: str) -> None:
    """Compare the blocks with the rows of all documents.

    Raises:
        IndexDamaged: they differ.
    """
    by_blocks, by_rows = read_blocks(connection, place), _table(connection)
    columns = (getattr(by_blocks, name).view(np.int64) for name in LOCATION_COLUMNS)
    if len(by_blocks) != by_rows.shape[1] or not all(map(np.array_equal, columns, by_rows)):
        raise damaged_catalog(_DAMAGED.format(place=place))


def _table(connection: sqlite3.Connection, where: str = "") -> NDArray[np.int64]:
    """The columns (`LOCATION_COLUMNS`, N) of documents, by their rows."""
    names = "id, shard_id, document_row, section_row, n_sections, chunk_row, first_chunk, n_chunks, tokens_total"
    statement = f"SELECT {names}, content_hash, doc_id FROM documents {where} ORDER BY id"
    rows = connection.execute(statement).fetchall()
    table = np.empty((len(LOCATION_COLUMNS), len(rows)), np.int64)
    if rows:
        *numbers, contents, doc_ids = zip(*rows, strict=True)
        table[:-2] = np.array(numbers, np.int64)
        table[-2:] = np.array([list(map(_content, contents)), list(map(name_key, doc_ids))], np.uint64).view(np.int64)
    return table


def _content(content_hash: str) -> int:
    try:
        return content_key(content_hash)
    except ValueError:  # a damaged row, which is found by its checksum
        return 0


def checksum_of(content: bytes) -> int:
    """XXH3 as the signed integer of 64 bits that SQLite holds."""
    return signed(xxhash.xxh3_64_intdigest(content))


def signed(digest: int) -> int:
    """A digest of 64 bits as the signed integer that SQLite holds."""
    return digest - (1 << 64) if digest >> 63 else digest


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
        raise damaged_catalog(f"{place} places document number {wrong} outside of its shard")


@dataclass(frozen=True, slots=True)
class TargetChunks:
    """The chunks of documents, one document after another."""

    vectors: Vectors  # (C, D)
    starts: NDArray[np.int64]  # (P,) first row of each document, rising
    places: NDArray[np.int64]  # (P,) the documents, as places among the R
    numbers: NDArray[np.int64] | None  # (C,) number of each chunk in its document; None if all chunks remain

    def numbered(self, matches: Matches) -> Matches:
        """Matches in the P documents, with each chunk numbered among all chunks of its document."""
        if self.numbers is None:
            return matches
        at = np.maximum(self.starts + matches.chunks, 0)
        return replace(matches, chunks=np.where(matches.chunks < 0, -1, self.numbers[at]))


@dataclass(frozen=True, slots=True)
class InvertedWords:
    """The terms of all documents."""

    positions: NDArray[np.int64]  # (N,) of the documents of the tables
    words: InvertedTable
    pairs: InvertedTable


class Gathering:
    """Documents with their vectors and words in shards."""

    width: int  # D; 0 without an encoder
    _shards: ShardSet
    _n_passes = 0  # over the words of all documents

    @property
    @abstractmethod
    def locations(self) -> Locations:
        """Where the vectors of each document are."""

    @property
    def has_vectors(self) -> NDArray[np.bool_]:
        """(N,) True for the documents that are encoded; the others are found by their words."""
        return self.locations.n_chunks > 0

    def words(self, positions: NDArray[np.int64], *, apart: bool = False) -> WordTables:
        """The term counts of at least one document, in the order given; `apart` includes those by kind of section."""
        places, packed = self.packed_words(positions, apart=apart)
        words, order = unpacked(packed), np.argsort(places)
        return words if np.array_equal(order, np.arange(len(order))) else words.of(order)

    def packed_words(
        self, positions: NDArray[np.int64], *, apart: bool = False
    ) -> tuple[NDArray[np.int64], PackedWords]:
        """The term counts of at least one document in the form that shards hold, shard by shard.

        Returns:
            The place in `positions` of each document, and the counts.
        """
        groups = self._by_shard(positions)
        parts = [
            (self._shards.words(number, apart=apart), self.locations.document_row[positions[places]])
            for number, places in groups
        ]
        return np.concatenate([places for _, places in groups]), gather(parts)

    def inverted_words(self, n_positions: int) -> InvertedWords | None:
        """The terms of all documents, inverted at the second query that compares most of them; None before that."""
        if not n_positions or 2 * n_positions < len(self.locations):
            return None
        self._n_passes += 1
        return self._inverted if self._n_passes > 1 else None

    @cached_property
    def _inverted(self) -> InvertedWords | None:
        places, counts = self.packed_words(np.arange(len(self.locations)))
        words, pairs = inverted(counts.words), inverted(counts.pairs)
        return None if words is None or pairs is None else InvertedWords(places, words, pairs)

    def document_rows(self, positions: NDArray[np.int64]) -> NDArray[np.float16]:
        """The document vectors (R, D) of documents, in the order given; zeros for documents that are not encoded."""
        rows = np.zeros((len(positions), self.width), np.float16)
        at = np.flatnonzero(self.has_vectors[positions])
        for number, of_shard in self._by_shard(positions[at]):
            members = at[of_shard]
            rows[members] = self._shards.part(number, "documents")[self.locations.document_row[positions[members]]]
        return rows

    @cached_property
    def document_vectors(self) -> Vectors:
        """(N, D) float32, unit rows up to half precision."""
        return as_float32(self.document_rows(np.arange(len(self.locations))))

    def chunk_vectors(self, positions: NDArray[np.int64]) -> tuple[Vectors, NDArray[np.int64]]:
        """The chunk vectors (C, D) of documents, one document after another, and the row at which each starts."""
        half, starts = self.chunk_rows(positions)
        return as_float32(half), starts

    def chunk_rows(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
        """Like `chunk_vectors`, in float16 as the shards hold them."""
        counts = self.locations.n_chunks[positions]
        ends = np.cumsum(counts)
        rows, numbers = self.locations.chunk_row[positions], self.locations.shard[positions]
        half = np.empty((int(ends[-1]) if len(ends) else 0, self.width), np.float16)
        # Documents that also follow each other in a shard are read as one stretch.
        is_next = (numbers[1:] == numbers[:-1]) & (rows[1:] == rows[:-1] + counts[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~is_next])[: len(positions)])
        begins = (ends - counts)[first]
        stretches = zip(
            numbers[first].tolist(),
            rows[first].tolist(),
            begins.tolist(),
            np.append(begins[1:], len(half)).tolist(),
            strict=False,  # without documents there is one end and no beginning
        )
        for number, row, begin, end in stretches:
            if begin == end:
                continue  # documents without vectors
            half[begin:end] = self._shards.part(number, "chunks")[row : row + end - begin]
        return half, ends - counts

    def runs(self, positions: NDArray[np.int64], n_chunks: int) -> list[NDArray[np.int64]]:
        """Documents in runs of about `n_chunks` chunks; a longer document is a run by itself."""
        block = (np.cumsum(self.locations.n_chunks[positions]) - 1) // n_chunks
        return np.split(positions, np.flatnonzero(np.diff(block)) + 1)

    def chunk_blocks(self, positions: NDArray[np.int64], n_chunks: int) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
        """The ids (C,) and vectors (C, D) of the chunks of documents, run by run; see `runs`."""
        for run in self.runs(positions, n_chunks):
            rows, _ = self.chunk_vectors(run)
            yield ranges(self.locations.first_chunk[run], self.locations.n_chunks[run]), rows

    def chunks_by_id(self, ids: NDArray[np.int64], positions: NDArray[np.int64]) -> Vectors:
        """The vectors (C, D) of single chunks, given their ids and the documents they belong to."""
        half = np.empty((len(ids), self.width), np.float16)
        rows = self.locations.chunk_row[positions] + ids - self.locations.first_chunk[positions]
        for number, members in self._by_shard(positions):
            half[members] = self._shards.part(number, "chunks")[rows[members]]
        return as_float32(half)

    def openings(self, positions: NDArray[np.int64]) -> Vectors:
        """The first chunk vector (R, D) of documents with vectors, in the order given."""
        return self.chunks_by_id(self.locations.first_chunk[positions], positions)

    def spans(self, position: int) -> NDArray[np.int32]:
        """(C, 4) section, start, stop and tokens of the chunks of one document."""
        first = int(self.locations.chunk_row[position])
        spans = self._shards.part(int(self.locations.shard[position]), "spans")
        return spans[first : first + int(self.locations.n_chunks[position])]

    def section_bits(self, position: int) -> NDArray[np.uint8]:
        """(A,) the kind of each section of one document as a bit, see `engine.text.section_kinds`."""
        apart = self._shards.words(int(self.locations.shard[position]), apart=True).apart
        assert apart is not None
        row = int(self.locations.document_row[position])
        return apart.kinds[slice(*apart.section_starts[row : row + 2].tolist())]

    def chunk_bits(self, positions: NDArray[np.int64]) -> NDArray[np.uint8]:
        """(C,) the kind of the section of each chunk as a bit, in the order of `chunk_vectors`."""
        counts = self.locations.n_chunks[positions]
        starts = np.cumsum(counts) - counts
        kinds = np.empty(int(counts.sum()), np.uint8)
        for number, members in self._by_shard(positions):
            apart, chosen = self._shards.words(number, apart=True).apart, positions[members]
            assert apart is not None
            chunks = ranges(self.locations.chunk_row[chosen], counts[members])
            first = apart.section_starts[self.locations.document_row[chosen]]
            sections = np.repeat(first, counts[members]) + self._shards.part(number, "spans")[chunks, 0]
            kinds[ranges(starts[members], counts[members])] = apart.kinds[sections]
        return kinds

    def target_chunks(self, positions: NDArray[np.int64], skip: int) -> TargetChunks:
        """The chunks of documents that a search compares.

        Args:
            positions: R documents with vectors.
            skip: bits of the kinds of sections that are left out, see `engine.text.section_kinds`.
        """
        vectors, starts = self.chunk_vectors(positions)
        every = np.arange(len(positions))
        left = (self.chunk_bits(positions) & skip) == 0 if skip else np.ones(len(vectors), bool)
        if left.all():
            return TargetChunks(vectors, starts, every, None)
        counts = self.locations.n_chunks[positions]
        n_left = np.bincount(np.repeat(every, counts)[left], minlength=len(positions))
        places = np.flatnonzero(n_left)
        numbers = (np.arange(len(vectors)) - np.repeat(starts, counts))[left]
        return TargetChunks(vectors[left], (np.cumsum(n_left) - n_left)[places], places, numbers)

    def target_words(
        self, positions: NDArray[np.int64], skip: int
    ) -> tuple[NDArray[np.int64], TermCounts | KeptTable, TermCounts | KeptTable]:
        """The term counts that a search compares: places among R documents, and their counts of words and of pairs.

        The arguments are those of `target_chunks`, with at least one document.
        """
        places, counts = self.packed_words(positions, apart=bool(skip))
        apart = counts.apart
        if apart is None:
            return places, counts.words, counts.pairs
        words = kept_table(counts.words, apart.counts.words, apart, skip)
        return places, words, kept_table(counts.pairs, apart.counts.pairs, apart, skip)

    def section_vectors(self, position: int) -> Vectors:
        """(S, D) float32 section vectors of one document."""
        first, count = (int(column[position]) for column in (self.locations.section_row, self.locations.n_sections))
        sections = self._shards.part(int(self.locations.shard[position]), "sections")
        return as_float32(sections[first : first + count])

    def encoded(self, position: int, coverage: Coverage) -> EncodedDocument:
        """The vectors of one document; empty arrays if it is not encoded."""
        at = np.array([position])
        return EncodedDocument(
            document=self.document_rows(at)[0].astype(np.float32),
            sections=self.section_vectors(position),
            chunks=self.chunk_vectors(at)[0],
            chunk_spans=tuple(Chunk(*row) for row in self.spans(position).tolist()),
            coverage=coverage,
        )

    def _by_shard(self, positions: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Group documents: (shard number, indices into `positions`)."""
        numbers = self.locations.shard[positions]
        order = np.argsort(numbers, kind="stable")
        distinct, first = np.unique(numbers[order], return_index=True)
        return list(zip(distinct.tolist(), np.split(order, first[1:]), strict=True)) if len(positions) else []

    def shard(self, number: int) -> Shard:
        """All arrays of a shard; see `ShardSet`."""
        return self._shards[number]

    def chunks_of(self, documents: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each chunk id from 0 on, whether it belongs to one of `documents`, an (N,) mask."""
        first, counts = self.locations.first_chunk[documents], self.locations.n_chunks[documents]
        steps = np.zeros(int((first + counts).max(initial=0)) + 1, np.int8)
        steps[first] += 1  # ids are used once, so no two documents begin, and no two end, at the same one
        steps[first + counts] -= 1
        belongs: NDArray[np.bool_] = np.cumsum(steps, dtype=np.int8).astype(bool)
        return belongs

    def documents_of_chunks(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position of the document that each chunk belongs to; -1 for removed ones and id -1."""
        if not len(self.locations):
            return np.full(chunk_ids.shape, -1)
        order, firsts = self._by_first_chunk
        at = np.maximum(np.searchsorted(firsts, chunk_ids, side="right") - 1, 0)
        positions = order[at]
        inside = (chunk_ids >= firsts[at]) & (chunk_ids < firsts[at] + self.locations.n_chunks[positions])
        return np.where(inside, positions, -1)

    @cached_property
    def _by_first_chunk(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.locations.first_chunk)
        return order, self.locations.first_chunk[order]
