"""Term counts of documents in few bytes, in the form in which files store them. Pure arrays: no text, no files.

The terms of a document are numbers of 32 bits that rise. The low 24 bits of each are kept as they
are; the high bytes rise slowly, and are kept as bits (Elias 1974, J. ACM 21(2)): term k with high
byte h sets bit h + k. Counts are unary: each term has count - 1 bits of 0, followed by a bit of 1.
The bits of each document begin at a new byte.

Letters in shapes: N documents, T terms of all of them, B bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.words.apart import Apart, gathered
from engine.words.counts import TermTable, WordTables, rows_of_places

_HIGHEST = 255  # high byte

Bytes = NDArray[np.uint8]
Starts = NDArray[np.int64]
Number = TypeVar("Number", np.uint8, np.uint16)


@dataclass(frozen=True)
class PackedTable:
    """A `TermTable` in 3.4 to 3.7 bytes a term; its terms and counts are read by place, without unpacking the rest."""

    lows: NDArray[np.uint16]  # (T,) low 16 bits of the terms
    middles: Bytes  # (T,) the next 8 bits of the terms
    highs: Bytes  # (B,) bits of the high bytes
    counts: Bytes  # (B',) bits of the counts
    starts: Starts  # (N + 1,) first term of each document, and T
    count_starts: Starts  # (N + 1,) first byte of each document in `counts`, and B'
    occurrences: NDArray[np.uint32]  # (N,) |d|

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.starts) - 1

    def of(self, documents: NDArray[np.int64]) -> PackedTable:
        """The counts of some documents, in the order given."""
        return _gathered([(self, documents)])

    def unpacked(self) -> TermTable:
        """The table with all terms and counts unpacked."""
        every = np.arange(len(self.lows))
        rows = self.rows_at(every)
        counts = self.counts_at(every, rows).astype(np.uint16)
        return TermTable(self.terms_at(every, rows), counts, self.starts, self.occurrences)

    def low_bits(self) -> NDArray[np.uint16]:
        """(T,) the low 16 bits of all terms."""
        return self.lows

    def rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document (n,) of each of some rising places."""
        return rows_of_places(self.starts, places)

    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places, of the documents `rows`."""
        numbers = places - self.starts[rows]  # number of each term in its document
        highs = _ones(self.highs)[places] - 8 * self.high_starts[rows] - numbers
        terms = (highs << 24) | (self.middles[places].astype(np.int64) << 16) | self.lows[places]
        return terms.astype(np.uint32)

    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts (n,) at some places, of the documents `rows`; at least 1."""
        ones = self._count_ones
        before = np.where(places > 0, ones[places - 1], -1)
        # The bits of a document begin at a new byte, so zeros can follow the last 1 of the document before.
        return ones[places] - np.maximum(before, 8 * self.count_starts[rows] - 1)

    def lengths(self) -> NDArray[np.float64]:
        """(N,) term occurrences of each document, |d|."""
        return self.occurrences.astype(np.float64)

    @cached_property
    def high_starts(self) -> Starts:
        """(N + 1,) first byte of each document in `highs`."""
        return _high_starts(self.starts)

    @cached_property
    def _count_ones(self) -> NDArray[np.int64]:
        return _ones(self.counts)


@dataclass(frozen=True, slots=True)
class PackedWords:
    """`WordTables` in the form in which files store them."""

    words: PackedTable
    pairs: PackedTable
    apart: Apart[PackedWords] | None = None  # counts by kind of section; None if these were not counted

    @property
    def n_documents(self) -> int:
        """N."""
        return self.words.n_documents

    def of(self, documents: NDArray[np.int64]) -> PackedWords:
        """The counts of some documents, in the order given."""
        return gather([(self, documents)])


def gather(parts: Sequence[tuple[PackedWords, NDArray[np.int64]]]) -> PackedWords:
    """The counts of documents of several tables, one table after another."""
    words = _gathered([(part.words, documents) for part, documents in parts])
    aparts = [(part.apart, documents) for part, documents in parts if part.apart is not None]
    apart = gathered(aparts, gather) if len(aparts) == len(parts) else None
    return PackedWords(words, _gathered([(part.pairs, documents) for part, documents in parts]), apart)


def pack(tables: WordTables) -> PackedWords:
    """Pack counts into few bytes."""
    apart = None if tables.apart is None else tables.apart.holding(pack(tables.apart.counts))
    return PackedWords(_packed(tables.words), _packed(tables.pairs), apart)


def unpacked(words: PackedWords) -> WordTables:
    """Packed counts as tables."""
    apart = None if words.apart is None else words.apart.holding(unpacked(words.apart.counts))
    return WordTables(words.words.unpacked(), words.pairs.unpacked(), apart)


def _packed(table: TermTable) -> PackedTable:
    rows, terms = table.rows(), table.terms
    high_starts = _high_starts(table.starts)
    numbers = np.arange(len(rows)) - table.starts[rows]  # number of each term in its document
    highs = _bits((terms >> 24).astype(np.int64) + numbers + 8 * high_starts[rows], int(high_starts[-1]))
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(table.counts, dtype=np.int64)])
    count_starts = _with_zero(-(-np.diff(sums[table.starts]) // 8))
    places = sums[1:] - sums[table.starts[:-1]][rows] - 1 + 8 * count_starts[rows]
    return PackedTable(
        (terms & 0xFFFF).astype(np.uint16),
        (terms >> 16 & 0xFF).astype(np.uint8),
        highs,
        _bits(places, int(count_starts[-1])),
        table.starts,
        count_starts,
        table.occurrences,
    )


def _high_starts(starts: Starts) -> Starts:
    """(N + 1,) the first byte of the high bits of each document."""
    sizes = np.diff(starts)
    return _with_zero(-(-(sizes + _HIGHEST) // 8) * (sizes > 0))


def _with_zero(sizes: NDArray[np.int64]) -> Starts:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _bits(places: NDArray[np.int64], n_bytes: int) -> Bytes:
    """Bytes with bits of 1 at the given places, the lowest bit of each byte first."""
    is_one = np.zeros(8 * n_bytes, np.uint8)
    is_one[places] = 1
    return np.packbits(is_one, bitorder="little")


def _ones(bits: Bytes) -> NDArray[np.int64]:
    """Places of the bits of 1."""
    return np.flatnonzero(np.unpackbits(bits, bitorder="little").view(bool))


def _gathered(parts: Sequence[tuple[PackedTable, NDArray[np.int64]]]) -> PackedTable:
    return PackedTable(
        _joined([_rows_of(part.lows, part.starts, documents) for part, documents in parts]),
        _joined([_rows_of(part.middles, part.starts, documents) for part, documents in parts]),
        _joined([_rows_of(part.highs, part.high_starts, documents) for part, documents in parts]),
        _joined([_rows_of(part.counts, part.count_starts, documents) for part, documents in parts]),
        _starts_of([(part.starts, documents) for part, documents in parts]),
        _starts_of([(part.count_starts, documents) for part, documents in parts]),
        np.concatenate([part.occurrences[documents] for part, documents in parts]),
    )


def _starts_of(parts: Sequence[tuple[Starts, NDArray[np.int64]]]) -> Starts:
    return _with_zero(np.concatenate([starts[documents + 1] - starts[documents] for starts, documents in parts]))


def _rows_of(array: NDArray[Number], starts: Starts, documents: NDArray[np.int64]) -> list[NDArray[Number]]:
    """The rows of some documents, one after another, in as few views as possible."""
    if not len(documents):
        return [array[:0]]
    firsts, stops = starts[documents], starts[documents + 1]
    is_new = np.concatenate([[True], firsts[1:] != stops[:-1]])
    at = np.flatnonzero(is_new)
    ends = np.append(at[1:], len(documents)) - 1
    return [array[first:stop] for first, stop in zip(firsts[at].tolist(), stops[ends].tolist(), strict=True)]


def _joined(parts: Sequence[Sequence[NDArray[Number]]]) -> NDArray[Number]:
    """All views as one array; a single view is not copied."""
    views = [view for part in parts for view in part]
    return views[0] if len(views) == 1 else np.concatenate(views)
