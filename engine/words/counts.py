"""How often terms occur in documents: sorted sparse rows, and the few bytes in which files store them. Pure arrays.

The terms of a document are numbers of 32 bits that rise. The low 24 bits of each are kept as they
are; the high bytes rise slowly, and are kept as bits (Elias 1974, J. ACM 21(2)): term k with high
byte h sets bit h + k. Counts are unary: each term has count - 1 bits of 0, followed by a bit of 1.
The bits of each document begin at a new byte.

Letters in shapes: N documents, T terms of all of them, B bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.section_kinds import section_bits
from engine.text.segmentation import Span
from engine.words.apart import (
    IN_TITLE,
    Apart,
    LeftOut,
    Sections,
    gathered,
    in_title,
    left_out,
    ranges,
    repeats,
    section_starts,
    title_span,
)
from engine.words.segmenter import Terms, WordSegmenter

MOST_COUNT = 65_535  # the largest uint16; a higher count is stored as this


class TermCounts(ABC):
    """The counts of one kind of term in any form; terms are addressed by place, one document after another."""

    __slots__ = ()
    starts: NDArray[np.int64]  # (N + 1,) first term of each document, and T
    occurrences: NDArray[np.uint32]  # (N,) |d|

    @abstractmethod
    def low_bits(self) -> NDArray[np.uint16]:
        """(T,) the low 16 bits of all terms."""

    @abstractmethod
    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places, of the documents `rows`."""

    @abstractmethod
    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.integer]:
        """The counts (n,) at some places, of the documents `rows`; at least 1."""

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.starts) - 1

    def rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document (n,) of each of some rising places."""
        # There are few documents and many places: the documents are searched for among the places.
        return np.repeat(np.arange(self.n_documents), np.diff(np.searchsorted(places, self.starts)))

    def lengths(self) -> NDArray[np.float64]:
        """(N,) term occurrences of each document, |d|."""
        return self.occurrences.astype(np.float64)


@dataclass(frozen=True, slots=True)
class TermTable(TermCounts):
    """The counts of one kind of term, one document after another; the terms of a document rise."""

    terms: NDArray[np.uint32]  # (T,)
    counts: NDArray[np.uint16]  # (T,) at least 1
    starts: NDArray[np.int64]  # (N + 1,) first term of each document, and T
    occurrences: NDArray[np.uint32]  # (N,) |d|

    def low_bits(self) -> NDArray[np.uint16]:
        """(T,) the low 16 bits of all terms."""
        return self.terms.astype(np.uint16)

    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places."""
        return self.terms[places]

    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        """The counts (n,) at some places, at least 1."""
        return self.counts[places]

    def rows(self) -> NDArray[np.int64]:
        """(T,) the document of each term."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.starts))

    def of(self, documents: NDArray[np.int64]) -> TermTable:
        """The counts of some documents, in the order given."""
        sizes = np.diff(self.starts)[documents]
        at = ranges(self.starts[documents], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return TermTable(self.terms[at], self.counts[at], starts, self.occurrences[documents])


TableT = TypeVar("TableT", TermTable, "PackedTable")


@dataclass(frozen=True)
class Words(Generic[TableT]):
    """The counts of documents: their content words, and their pairs of neighbouring content words."""

    words: TableT
    pairs: TableT
    apart: Apart[Words[TableT]] | None = None  # counts by kind of section; None if these were not counted

    @property
    def n_documents(self) -> int:
        """N."""
        return self.words.n_documents

    def of(self, documents: NDArray[np.int64]) -> Words[TableT]:
        """The counts of some documents, in the order given."""
        apart = None if self.apart is None else self.apart.of(documents)
        return Words(self.words.of(documents), self.pairs.of(documents), apart)


WordTables: TypeAlias = Words[TermTable]


@dataclass(frozen=True, slots=True)
class KeptTable:
    """The counts of one kind of term without the sections that a search leaves out."""

    whole: TermCounts
    groups: TermCounts  # of G groups, see `engine.words.apart`
    left_out: LeftOut

    @property
    def n_documents(self) -> int:
        """N."""
        return self.whole.n_documents

    def lengths(self) -> NDArray[np.float64]:
        """(N,) remaining term occurrences of each document, |d|."""
        return self.left_out.lengths


def kept_table(whole: TermCounts, groups: TermCounts, apart: Apart[Any], skip: int) -> KeptTable:
    """The counts of one kind of term outside of some kinds of sections.

    A count of `MOST_COUNT` or more in the whole document is taken as `MOST_COUNT` before sections are left out.
    """
    return KeptTable(whole, groups, left_out(apart, skip, whole.lengths(), groups.lengths()))


def join(tables: Sequence[WordTables]) -> WordTables:
    """Tables of several groups of documents as one, in their order."""
    aparts = [(batch.apart, np.arange(batch.n_documents)) for batch in tables if batch.apart is not None]
    apart = gathered(aparts, lambda parts: join([part for part, _ in parts])) if len(aparts) == len(tables) else None
    return WordTables(
        _join([batch.words for batch in tables]),
        _join([batch.pairs for batch in tables]),
        apart,
    )


def _join(tables: Sequence[TermTable]) -> TermTable:
    sizes = [np.diff(table.starts) for table in tables]
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
    empty = TermTable(np.empty(0, np.uint32), np.empty(0, np.uint16), np.zeros(1, np.int64), np.empty(0, np.uint32))
    parts = tables or [empty]
    return TermTable(
        np.concatenate([table.terms for table in parts]),
        np.concatenate([table.counts for table in parts]),
        ends,
        np.concatenate([table.occurrences for table in parts]),
    )


def count_documents(segmenter: WordSegmenter, documents: Iterable[Document]) -> WordTables:
    """Segment the texts of documents and count their terms, those of their titles more often."""
    texts, titles, sections = [], [], []
    for document in documents:
        texts.append(segmenter.segment(document.text))
        titles.append(title_span(document))
        sections.append(Sections(section_starts(document), section_bits(document)))
    return counted(texts, titles, sections)


def count_words(segmenter: WordSegmenter, texts: Iterable[str]) -> WordTables:
    """Segment texts without titles and count their terms."""
    return counted([segmenter.segment(text) for text in texts])


def counted(
    texts: Sequence[Terms], titles: Sequence[Span | None] | None = None, sections: Sequence[Sections] | None = None
) -> WordTables:
    """The counts of segmented texts.

    Args:
        titles: span of the title of each text, see `engine.words.apart`; by default no text has one.
        sections: of each text, with the bits of their kinds; by default nothing is counted apart.
    """
    titles = [None] * len(texts) if titles is None else titles
    both = list(zip(texts, titles, strict=True))
    return WordTables(
        _table([_summed(terms.words, terms.word_spans, title) for terms, title in both]),
        _table([_summed(terms.pairs, terms.pair_spans, title) for terms, title in both]),
        None if sections is None else _counted_apart(texts, titles, sections),
    )


def _counted_apart(
    texts: Sequence[Terms], titles: Sequence[Span | None], sections: Sequence[Sections]
) -> Apart[WordTables]:
    """The groups of occurrences that are counted apart; see `engine.words.apart`."""
    words: list[_Counted] = []
    pairs: list[_Counted] = []
    groups: list[int] = []
    ends = [0]
    for found, title, own in zip(texts, titles, sections, strict=True):
        of_words, of_pairs = (
            _grouped(terms, spans, title, own.touched(spans))
            for terms, spans in ((found.words, found.word_spans), (found.pairs, found.pair_spans))
        )
        bits = sorted(of_words.keys() | of_pairs.keys())
        words += (of_words.get(one, _NOTHING) for one in bits)
        pairs += (of_pairs.get(one, _NOTHING) for one in bits)
        groups += bits
        ends.append(len(groups))
    return Apart(
        np.concatenate([np.empty(0, np.uint8), *(one.bits for one in sections)]),
        np.cumsum([0, *(len(one.bits) for one in sections)]).astype(np.int64),
        np.array(groups, np.uint8),
        np.array(ends, np.int64),
        WordTables(_table(words), _table(pairs)),
    )


def _grouped(
    terms: NDArray[np.uint32], spans: NDArray[np.int64], title: Span | None, touched: NDArray[np.uint8]
) -> dict[int, _Counted]:
    """The distinct terms of one text by group."""
    groups = {}
    for bits in np.unique(touched[touched > 0]).tolist():
        groups[bits] = _summed(terms[touched == bits], spans, None)
    if title is not None:
        is_inside = in_title(spans, title)
        for bits in np.unique(touched[is_inside]).tolist():
            groups[bits | IN_TITLE] = _summed(terms[is_inside & (touched == bits)], spans, None)
    return groups


@dataclass(frozen=True, slots=True)
class _Counted:
    """The distinct terms of one text."""

    terms: NDArray[np.uint32]  # (n,) rising
    counts: NDArray[np.int64]  # (n,)
    n_occurrences: int


_NOTHING = _Counted(np.empty(0, np.uint32), np.empty(0, np.int64), 0)


def _summed(terms: NDArray[np.uint32], spans: NDArray[np.int64], title: Span | None) -> _Counted:
    distinct, counts = np.unique(terms, return_counts=True)
    if title is not None:
        times = repeats(spans, title)
        again = np.flatnonzero(times > 1)
        np.add.at(counts, np.searchsorted(distinct, terms[again]), times[again] - 1)
    return _Counted(distinct, counts, len(terms))


def _table(texts: Sequence[_Counted]) -> TermTable:
    counts = [np.minimum(terms.counts, MOST_COUNT).astype(np.uint16) for terms in texts]
    return TermTable(
        np.concatenate([np.empty(0, np.uint32), *(terms.terms for terms in texts)]),
        np.concatenate([np.empty(0, np.uint16), *counts]),
        np.cumsum([0, *(len(terms.terms) for terms in texts)]).astype(np.int64),
        np.array([terms.n_occurrences for terms in texts], np.uint32),
    )


_HIGHEST = 255  # high byte

Bytes = NDArray[np.uint8]
Starts = NDArray[np.int64]
Number = TypeVar("Number", np.uint8, np.uint16)


@dataclass(frozen=True)
class PackedTable(TermCounts):
    """A `TermTable` in 3.4 to 3.7 bytes a term; its terms and counts are read by place, without unpacking the rest."""

    lows: NDArray[np.uint16]  # (T,) low 16 bits of the terms
    middles: Bytes  # (T,) the next 8 bits of the terms
    highs: Bytes  # (B,) bits of the high bytes
    counts: Bytes  # (B',) bits of the counts
    starts: Starts  # (N + 1,) first term of each document, and T
    count_starts: Starts  # (N + 1,) first byte of each document in `counts`, and B'
    occurrences: NDArray[np.uint32]  # (N,) |d|

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

    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places, of the documents `rows`."""
        terms = _ones(self.highs)[places]  # one array is reused, as a table has many places
        terms -= 8 * self.high_starts[rows]
        terms -= places - self.starts[rows]  # number of each term in its document
        terms <<= 8
        terms |= self.middles[places]
        terms <<= 16
        terms |= self.lows[places]
        return terms.astype(np.uint32)

    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts (n,) at some places, of the documents `rows`; at least 1."""
        ones = self._count_ones
        counts = ones[places - 1]
        counts[places == 0] = -1
        # The bits of a document begin at a new byte, so zeros can follow the last 1 of the document before.
        np.maximum(counts, 8 * self.count_starts[rows] - 1, out=counts)
        return np.subtract(ones[places], counts, out=counts)

    @cached_property
    def high_starts(self) -> Starts:
        """(N + 1,) first byte of each document in `highs`."""
        return _high_starts(self.starts)

    @cached_property
    def _count_ones(self) -> NDArray[np.int64]:
        return _ones(self.counts)


PackedWords: TypeAlias = Words[PackedTable]  # `WordTables` in the form in which files store them


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
    runs = [(part, _runs(documents)) for part, documents in parts]
    return PackedTable(
        _joined([_rows_of(part.lows, part.starts, run) for part, run in runs]),
        _joined([_rows_of(part.middles, part.starts, run) for part, run in runs]),
        _joined([_rows_of(part.highs, part.high_starts, run) for part, run in runs]),
        _joined([_rows_of(part.counts, part.count_starts, run) for part, run in runs]),
        _starts_of([(part.starts, documents) for part, documents in parts]),
        _starts_of([(part.count_starts, documents) for part, documents in parts]),
        np.concatenate([part.occurrences[documents] for part, documents in parts]),
    )


def _starts_of(parts: Sequence[tuple[Starts, NDArray[np.int64]]]) -> Starts:
    return _with_zero(np.concatenate([starts[documents + 1] - starts[documents] for starts, documents in parts]))


def _runs(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) the first and the stop of each run of documents that follow each other."""
    if not len(documents):
        return np.zeros((1, 2), np.int64)
    stops = documents + 1
    edges = np.flatnonzero(documents[1:] != stops[:-1])
    return np.stack([documents[np.append(0, edges + 1)], stops[np.append(edges, -1)]], axis=1)


def _rows_of(array: NDArray[Number], starts: Starts, runs: NDArray[np.int64]) -> list[NDArray[Number]]:
    """The rows of some documents, one after another, in as few views as possible."""
    return [array[first:stop] for first, stop in starts[runs].tolist()]


def _joined(parts: Sequence[Sequence[NDArray[Number]]]) -> NDArray[Number]:
    """All views as one array; a single view is not copied."""
    views = [view for part in parts for view in part]
    return views[0] if len(views) == 1 else np.concatenate(views)
