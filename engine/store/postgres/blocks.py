"""Vectors and term counts of runs of documents, read from PostgreSQL when they are first needed. Scores nothing.

A run takes the place of a shard on disk: documents with consecutive ids, with all their vectors and term counts. Parts
of runs that were read stay in memory up to a limit; the least recently used part is dropped first. The rows cannot
change, because all are read in one transaction.

Letters in shapes: N documents of a run, D width.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from engine.errors import IndexDamaged
from engine.store.postgres.reading import Reader
from engine.store.roster import Roster
from engine.store.shards import Shard, ShardSet
from engine.words.apart import Apart
from engine.words.counts import WordTables
from engine.words.packing import PackedTable, PackedWords

RUN_CHUNKS = 16_384  # chunks of a run, about: 13 MB at width 384
RUN_DOCUMENTS = 1_024
KEPT_BYTES = 1 << 30  # in memory at one time
SPANS = ("section", "start", "stop", "n_tokens")
_IN_ORDER = "document_id, position"
_KINDS = ("words", "pairs")


def runs_of(n_chunks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The run of each document, from 0.

    Args:
        n_chunks: chunks of each document, in the order of ids.
    """
    by_chunks = (np.cumsum(n_chunks) - n_chunks) // RUN_CHUNKS
    changes = np.flatnonzero(np.diff(by_chunks, prepend=-1))
    place = np.arange(len(n_chunks)) - np.repeat(changes, np.diff(changes, append=len(n_chunks)))
    is_first = place % RUN_DOCUMENTS == 0
    return np.cumsum(is_first) - 1


class Runs(ShardSet):
    """The runs of one reader, by number."""

    def __init__(self, reader: Reader, roster: Roster, width: int, kept_bytes: int = KEPT_BYTES) -> None:
        """Read nothing yet.

        Args:
            reader: stays open while the runs are used.
            roster: of all documents; its `shard` column holds numbers of runs.
            width: D; 0 without an encoder.
            kept_bytes: limit on the bytes that stay in memory.
        """
        super().__init__(reader.address, {})
        self._reader = reader
        self._width = width
        self._kept_bytes = kept_bytes
        numbers, first = np.unique(roster.shard, return_index=True)
        self._ids = dict(zip(numbers.tolist(), np.split(roster.ids, first[1:]), strict=True)) if len(roster) else {}
        self._kept: OrderedDict[tuple[int, str], Any] = OrderedDict()
        self._sizes: dict[tuple[int, str], int] = {}

    def __getitem__(self, number: int) -> Shard:
        """All arrays of a run."""
        if number in self._whole:  # attached, only in memory
            return self._whole[number]
        parts = self.documents(number), self.sections(number), self.chunks(number), self.spans(number)
        return Shard(*parts, self.words(number, apart=True))

    def words(self, number: int, *, apart: bool = False) -> WordTables | PackedWords | None:
        """The term counts of a run; with `apart`, also the separate counts by kind of section."""
        if number in self._whole:
            return super().words(number, apart=apart)
        words = cast(PackedWords, self._once(number, "words", self._read_words))
        return replace(words, apart=self._once(number, "apart", self._read_apart)) if apart else words

    def _part(self, number: int, name: str) -> NDArray[Any]:
        if number in self._whole:
            whole: NDArray[Any] = getattr(self._whole[number], name)
            return whole
        read = {
            "documents": self._read_documents,
            "sections": lambda ids: self._read_vectors("sections", ids),
            "chunks": lambda ids: self._read_vectors("chunks", ids),
            "spans": self._read_spans,
        }
        return cast("NDArray[Any]", self._once(number, name, read[name]))

    def _once(self, number: int, name: str, read: Callable[[NDArray[np.int64]], Any]) -> Any:  # noqa: ANN401
        """A part of a run, from memory or else from the server."""
        key = number, name
        if (found := self._kept.get(key)) is None:
            found = self._kept[key] = read(self._ids[number])
            self._sizes[key] = _n_bytes(found)
            while sum(self._sizes.values()) > self._kept_bytes and len(self._kept) > 1:
                self._sizes.pop(self._kept.popitem(last=False)[0])
        self._kept.move_to_end(key)
        return found

    def _read_documents(self, ids: NDArray[np.int64]) -> NDArray[np.float16]:
        """Document vectors (N, D); zeros for a document without vectors."""
        vectors = np.zeros((len(ids), self._width), np.float16)
        if self._width:
            rows = self._reader.between("documents", {"id": "int8"}, _ends(ids), "id", width=self._width)
            vectors[np.searchsorted(ids, rows["id"])] = rows["vector"]
        return vectors

    def _read_vectors(self, table: str, ids: NDArray[np.int64]) -> NDArray[np.float16]:
        if not self._width:
            return np.empty((0, 0), np.float16)
        rows = self._reader.between(table, {}, _ends(ids), _IN_ORDER, width=self._width)
        return rows["vector"].astype(np.float16)

    def _read_spans(self, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        rows = self._reader.between("chunks", dict.fromkeys(SPANS, "int4"), _ends(ids), _IN_ORDER)
        return np.stack([rows[name] for name in SPANS], axis=1).astype(np.int32)

    def _read_words(self, ids: NDArray[np.int64]) -> PackedWords:
        words, pairs = (self._read_counts(kind, ids) for kind in _KINDS)
        for one in (words, pairs):
            if one.n_documents != len(ids):
                raise IndexDamaged(
                    f"{self._reader.address} holds term counts of {one.n_documents:,} documents where it has "
                    f"{len(ids):,}; copy the index there again"
                )
        return PackedWords(words, pairs)

    def _read_apart(self, ids: NDArray[np.int64]) -> Apart[PackedWords]:
        rows = self._reader.rows(
            "SELECT kinds, groups FROM documents WHERE id BETWEEN %s AND %s ORDER BY id", *_ends(ids)
        )
        kinds, groups = ([row[place] for row in rows] for place in range(2))
        words, pairs = (self._read_counts(kind, ids, "group_counts", "document_id, position") for kind in _KINDS)
        return Apart(
            np.frombuffer(b"".join(kinds), np.uint8),
            _starts([len(one) for one in kinds]),
            np.frombuffer(b"".join(groups), np.uint8),
            _starts([len(one) for one in groups]),
            PackedWords(words, pairs),
        )

    def _read_counts(
        self, kind: str, ids: NDArray[np.int64], table: str = "term_counts", order: str = "document_id"
    ) -> PackedTable:
        rows = self._reader.rows(
            f"SELECT occurrences, lows, middles, highs, counts FROM {table} "
            f"WHERE kind = %s AND document_id BETWEEN %s AND %s ORDER BY {order}",
            kind,
            *_ends(ids),
        )
        occurrences, lows, middles, highs, counts = ([row[place] for row in rows] for place in range(5))
        return PackedTable(
            np.frombuffer(b"".join(lows), "<u2"),
            np.frombuffer(b"".join(middles), np.uint8),
            np.frombuffer(b"".join(highs), np.uint8),
            np.frombuffer(b"".join(counts), np.uint8),
            _starts([len(one) for one in middles]),
            _starts([len(one) for one in counts]),
            np.array(occurrences, np.uint32),
        )


def _ends(ids: NDArray[np.int64]) -> tuple[int, int]:
    return int(ids[0]), int(ids[-1])


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _n_bytes(read: NDArray[Any] | PackedWords | Apart[PackedWords]) -> int:
    """Bytes in memory, about."""
    if isinstance(read, np.ndarray):
        return read.nbytes
    if isinstance(read, Apart):
        return _n_bytes(read.counts)
    tables = read.words, read.pairs
    return sum(part.nbytes for one in tables for part in (one.lows, one.middles, one.highs, one.counts, one.starts))
