"""How often terms occur in documents, as sorted sparse rows. Pure arrays: no text, no files.

Letters in shapes: N documents, T terms of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.spans import Span
from engine.words.apart import IN_TITLE, Apart, LeftOut, Sections, gathered, left_out, ranges
from engine.words.segmenter import Terms, WordSegmenter
from engine.words.titles import in_title, repeats, title_span

MOST_COUNT = 65_535  # the largest uint16; a higher count is stored as this


class TermCounts(Protocol):
    """The counts of one kind of term in any form; terms are addressed by place, one document after another."""

    @property
    def n_documents(self) -> int:
        """N."""

    def low_bits(self) -> NDArray[np.uint16]:
        """(T,) the low 16 bits of all terms."""

    def rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document (n,) of each of some rising places."""

    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places, of the documents `rows`."""

    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.integer]:
        """The counts (n,) at some places, of the documents `rows`; at least 1."""

    def lengths(self) -> NDArray[np.float64]:
        """(N,) term occurrences of each document, |d|."""


@dataclass(frozen=True, slots=True)
class TermTable:
    """The counts of one kind of term, one document after another; the terms of a document rise."""

    terms: NDArray[np.uint32]  # (T,)
    counts: NDArray[np.uint16]  # (T,) at least 1
    starts: NDArray[np.int64]  # (N + 1,) first term of each document, and T
    occurrences: NDArray[np.uint32]  # (N,) |d|

    @property
    def n_documents(self) -> int:
        """N."""
        return len(self.starts) - 1

    def low_bits(self) -> NDArray[np.uint16]:
        """(T,) the low 16 bits of all terms."""
        return self.terms.astype(np.uint16)

    def rows_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document (n,) of each of some rising places."""
        return rows_of_places(self.starts, places)

    def terms_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """The terms (n,) at some places."""
        return self.terms[places]

    def counts_at(self, places: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        """The counts (n,) at some places, at least 1."""
        return self.counts[places]

    def lengths(self) -> NDArray[np.float64]:
        """(N,) term occurrences of each document, |d|."""
        return self.occurrences.astype(np.float64)

    def rows(self) -> NDArray[np.int64]:
        """(T,) the document of each term."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.starts))

    def of(self, documents: NDArray[np.int64]) -> TermTable:
        """The counts of some documents, in the order given."""
        sizes = np.diff(self.starts)[documents]
        at = ranges(self.starts[documents], sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return TermTable(self.terms[at], self.counts[at], starts, self.occurrences[documents])


@dataclass(frozen=True, slots=True)
class WordTables:
    """The counts of documents: their content words, and their pairs of neighbouring content words."""

    words: TermTable
    pairs: TermTable
    apart: Apart[WordTables] | None = None  # counts by kind of section; None if these were not counted

    @property
    def n_documents(self) -> int:
        """N."""
        return self.words.n_documents

    def of(self, documents: NDArray[np.int64]) -> WordTables:
        """The counts of some documents, in the order given."""
        apart = None if self.apart is None else self.apart.of(documents)
        return WordTables(self.words.of(documents), self.pairs.of(documents), apart)


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


def rows_of_places(starts: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The document (n,) that each place belongs to.

    Args:
        starts: (N + 1,) first place of each document, and the number of places.
        places: (n,) rising.
    """
    # There are few documents and many places: the documents are searched for among the places.
    return np.repeat(np.arange(len(starts) - 1), np.diff(np.searchsorted(places, starts)))


def join(tables: Sequence[WordTables]) -> WordTables:
    """Tables of several groups of documents as one, in their order."""
    aparts = [(one.apart, np.arange(one.n_documents)) for one in tables if one.apart is not None]
    apart = gathered(aparts, lambda parts: join([part for part, _ in parts])) if len(aparts) == len(tables) else None
    return WordTables(_join([one.words for one in tables]), _join([one.pairs for one in tables]), apart)


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
    found = [(segmenter.segment(one.text), title_span(one), Sections.of_kinds(one)) for one in documents]
    return counted(*(list(column) for column in zip(*found, strict=True))) if found else counted([], [], [])


def count_words(segmenter: WordSegmenter, texts: Iterable[str]) -> WordTables:
    """Segment texts without titles and count their terms."""
    return counted([segmenter.segment(text) for text in texts])


def counted(
    texts: Sequence[Terms],
    titles: Sequence[Span | None] | None = None,
    sections: Sequence[Sections] | None = None,
) -> WordTables:
    """The counts of segmented texts.

    Args:
        titles: span of the title of each text, see `engine.words.titles`; by default no text has one.
        sections: of each text, with the bits of their kinds; by default nothing is counted apart.
    """
    titles = [None] * len(texts) if titles is None else titles
    both = list(zip(texts, titles, strict=True))
    return WordTables(
        _table([_summed(one.words, one.word_spans, title) for one, title in both]),
        _table([_summed(one.pairs, one.pair_spans, title) for one, title in both]),
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
    found = {}
    for bits in np.unique(touched[touched > 0]).tolist():
        found[bits] = _summed(terms[touched == bits], spans, None)
    if title is not None:
        is_inside = in_title(spans, title)
        for bits in np.unique(touched[is_inside]).tolist():
            found[bits | IN_TITLE] = _summed(terms[is_inside & (touched == bits)], spans, None)
    return found


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
    counts = [np.minimum(one.counts, MOST_COUNT).astype(np.uint16) for one in texts]
    return TermTable(
        np.concatenate([np.empty(0, np.uint32), *(one.terms for one in texts)]),
        np.concatenate([np.empty(0, np.uint16), *counts]),
        np.cumsum([0, *(len(one.terms) for one in texts)]).astype(np.int64),
        np.array([one.n_occurrences for one in texts], np.uint32),
    )
