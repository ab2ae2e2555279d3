"""The parts of a score: which section matches which, by which passages and words, for how much. Values alone.

A pair of long documents has thousands of parts, of which few are read: section pairs and terms are arrays until one is
read. Letters in shapes: P section pairs, T shared terms, A sections of the query.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Deferred
from engine.text.segmentation import Span
from engine.words.places import TermPlaces

N_TERMS = 10  # terms listed for a pair of sections

PartT = TypeVar("PartT")


class LazyParts(Sequence[PartT], Generic[PartT]):
    """A sequence of parts, each made when it is first read; equal to any sequence of equal parts."""

    def __init__(self, n_parts: int, make: Callable[[int], PartT]) -> None:
        """Keep the function that makes a part by its place."""
        self._n_parts = n_parts
        self._make = make
        self._made: dict[int, PartT] = {}

    def __len__(self) -> int:
        return self._n_parts

    @overload
    def __getitem__(self, at: int) -> PartT: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[PartT, ...]: ...

    def __getitem__(self, at: int | slice) -> PartT | tuple[PartT, ...]:
        if isinstance(at, slice):
            return tuple(self._part(place) for place in range(self._n_parts)[at])
        return self._part(range(self._n_parts)[at])

    def _part(self, place: int) -> PartT:
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def __iter__(self) -> Iterator[PartT]:
        return map(self._part, range(self._n_parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """A chunk of the query and its best match in the target."""

    query: Span
    target: Span
    similarity: float
    opening: float  # similarity of the chunk to the opening of the target
    threshold: float  # of the similarity, that few documents of the reference exceed
    weight: float  # share of the chunk component that the chunk has in a copy of the query
    contribution: float


@dataclass(frozen=True, slots=True)
class TermPart:
    """A word, or a pair of neighbouring words, that both texts have."""

    term: str  # as it is first written in the target
    contribution: float
    key: int = 0  # by which `TermPlaces` finds it: its hash, plus `PAIR` for a pair of words


@dataclass(frozen=True, slots=True)
class SectionPair:
    """A section of the query and a section of the target, and all that matches between them."""

    query_section: int
    target_section: int
    contribution: float  # of parts and words
    parts: tuple[ChunkPart, ...]  # strongest first
    words: float = 0.0  # contribution of all terms that both sections have
    terms: tuple[TermPart, ...] = ()  # the strongest shared terms, strongest first


@dataclass(frozen=True, slots=True)
class SmallPairs:
    """Weak section pairs as one part: those below the minimum contribution of a search, or beyond those listed."""

    n_pairs: int  # at least 1; a section that is not divided is one pair with the whole target
    contribution: float
    words: float  # the amount of the contribution that words add

    def with_all(self, columns: PairColumns) -> SmallPairs:
        """The sum of these and of other pairs."""
        n_pairs, words = self.n_pairs + len(columns.words), self.words + float(columns.words.sum())
        return SmallPairs(n_pairs, self.contribution + float(columns.contributions.sum()), words)


NO_SMALL_PAIRS = SmallPairs(0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SectionSums:
    """What each section of the query adds to a score, over all of the target."""

    contributions: NDArray[np.float64]  # (A,)
    words: NDArray[np.float64]  # (A,) the amount that words add


@dataclass(frozen=True, slots=True)
class PairColumns:
    """Section pairs as arrays (P,)."""

    query_sections: NDArray[np.int64]
    target_sections: NDArray[np.int64]
    contributions: NDArray[np.float64]
    words: NDArray[np.float64]

    def of(self, at: NDArray[np.int64] | NDArray[np.bool_] | slice) -> PairColumns:
        """Some of the pairs."""
        return PairColumns(self.query_sections[at], self.target_sections[at], self.contributions[at], self.words[at])


class SectionPairs(LazyParts[SectionPair]):
    """The section pairs of one target, with arrays of them."""

    def __init__(self, columns: PairColumns, make: Callable[[int], SectionPair]) -> None:
        super().__init__(len(columns.contributions), make)
        self.columns = columns


def pair_columns(pairs: Sequence[SectionPair]) -> PairColumns:
    """Section pairs as arrays, without making those of a search."""
    if isinstance(pairs, SectionPairs):
        return pairs.columns
    return PairColumns(
        np.array([pair.query_section for pair in pairs], np.int64),
        np.array([pair.target_section for pair in pairs], np.int64),
        np.array([pair.contribution for pair in pairs], np.float64),
        np.array([pair.words for pair in pairs], np.float64),
    )


@dataclass(frozen=True, slots=True)
class TermColumns:
    """Terms as arrays (T,), in any order."""

    keys: NDArray[np.int64]
    contributions: NDArray[np.float64]


class RankedTerms(LazyParts[TermPart]):
    """Terms, strongest first; the first few are found without sorting all."""

    def __init__(self, columns: TermColumns, strongest: Callable[[int], tuple[TermPart, ...]]) -> None:
        self._n_parts, self._made = len(columns.keys), {}
        self.columns = columns
        self._strongest = strongest
        self._first: tuple[TermPart, ...] = ()

    def _make(self, at: int) -> TermPart:  # a method, as an attribute would hold this object until garbage is collected
        if at >= len(self._first):
            self._first = self._strongest(min(len(self), 4 * max(N_TERMS, at)))
        return self._first[at]


def term_columns(terms: Sequence[TermPart]) -> TermColumns:
    """Terms as arrays, without making those of a search."""
    if isinstance(terms, RankedTerms):
        return terms.columns
    contributions = np.array([term.contribution for term in terms], np.float64)
    return TermColumns(np.array([term.key for term in terms], np.int64), contributions)


@dataclass(frozen=True, slots=True)
class Breakdown(Deferred):
    """All parts of one score; their contributions sum to it.

    In the result of a search, all but the components is computed on first access.
    """

    pairs: Sequence[SectionPair]  # pairs of body sections, then the others; each group strongest first
    terms: Sequence[TermPart]  # all terms, over the whole documents, strongest first
    components: Mapping[str, float]  # contribution of chunks, words and pairs of words
    small: SmallPairs | None = None  # the section pairs below the minimum of the search; None where there are none
    # Of two very long texts only the strongest sections of the query are divided into pairs, `small` sums the others:
    sections: SectionSums | None = None  # what each section of the query adds, divided or not; None where all are
    # Where the terms of query and target stand; None for a breakdown that no search made.
    places: tuple[TermPlaces, TermPlaces] | None = field(default=None, repr=False, compare=False)

    @property
    def score(self) -> float:
        """The sum of the parts."""
        rest = self.beyond([])
        return rest.contribution if rest else 0.0

    def beyond(self, listed: Sequence[int]) -> SmallPairs | None:
        """All section pairs but those listed as one part, the small ones included; None if there are none."""
        columns = pair_columns(self.pairs).of(np.delete(np.arange(len(self.pairs)), listed))
        rest = (self.small or NO_SMALL_PAIRS).with_all(columns)
        return rest if rest.n_pairs else None

    @property
    def n_pairs(self) -> int:
        """All section pairs, the small ones included."""
        return len(self.pairs) + (self.small.n_pairs if self.small else 0)
