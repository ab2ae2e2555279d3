"""The parts of a score: which section matches which, by which passages and words, for how much. Values and functions.

A component c adds v_c c^r to the score (`engine.scoring.evidence`); a part with a share of the
component has the same share of this contribution. So contributions sum to the score. A pair of long documents
has thousands of parts, of which few are read: section pairs and terms are arrays until one is read.

Letters in shapes: I query chunks, R targets, C chunks of one, P section pairs, T shared terms, n their places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from engine.lazy import Deferred, deferred
from engine.scoring.evidence import COMPONENTS, Components, Scoring, Thresholds, margin
from engine.scoring.similarity import Matches
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.spans import Chunk, Span
from engine.words.apart import Sections
from engine.words.likelihood import QueryTerms, matches
from engine.words.mixture import N_DIVIDED, DividedMixture, Mixture, is_long
from engine.words.places import PAIR, QueryText, TermPlaces, section_starts
from engine.words.segmenter import segmenter_of
from engine.words.titles import title_span

N_TERMS = 10  # terms listed for a pair of sections
KINDS_OF_TERMS = ("words", "pairs")

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
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(_is_equal, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _is_equal(one: object, other: object) -> bool:
    return one == other


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """A chunk of the query and its best match in the target."""

    query: Span
    target: Span
    similarity: float
    threshold: float  # that few documents of the reference exceed
    weight: float  # share of the chunk component that the chunk has at similarity 1
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


@dataclass(frozen=True, slots=True)
class SectionSums:
    """What each section of the query adds to a score, over all of the target."""

    contributions: NDArray[np.float64]  # (A,)
    words: NDArray[np.float64]  # (A,) the amount that words add


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
        columns = pair_columns(self.pairs)
        columns = columns.of(np.delete(np.arange(len(self.pairs)), listed))
        n_pairs = self.n_pairs - len(listed)
        small = self.small or SmallPairs(0, 0.0, 0.0)
        return (
            None
            if not n_pairs
            else SmallPairs(
                n_pairs,
                float(columns.contributions.sum()) + small.contribution,
                float(columns.words.sum()) + small.words,
            )
        )

    @property
    def n_pairs(self) -> int:
        """All section pairs, the small ones included."""
        return len(self.pairs) + (self.small.n_pairs if self.small else 0)


@dataclass(frozen=True, slots=True)
class Scored:
    """The values that the scores of R targets were computed from."""

    limits: Thresholds
    matches: Matches  # (I, R)
    components: Components  # of R targets
    weights: Mapping[str, float]  # v_c
    scoring: Scoring
    words: QueryTerms | None
    pairs: QueryTerms | None
    text: QueryText
    section_weights: NDArray[np.float64] | None = None  # (A,) of the sections of the query; None where all are 1
    min_pair: float = 0.0  # lowest contribution of a section pair that is a part of its own
    skip: int = 0  # bits of the kinds of sections of targets that take no part, see `engine.text.section_kinds`


def break_down(
    query_chunks: Sequence[Chunk],
    targets: Sequence[Document],
    target_spans: Sequence[NDArray[np.int32]],
    target_bits: Sequence[NDArray[np.uint8]],
    scored: Scored,
) -> list[Breakdown]:
    """Break the scores of R targets down into parts.

    Args:
        target_spans: (C, 4) section, start, stop and tokens of the chunks of each target.
        target_bits: (A,) of the kinds of the sections of each target, see `engine.text.section_kinds`.
    """
    limits, scoring = scored.limits, scored.scoring
    shares = limits.weights[:, None] * margin(scored.matches.similarities, limits.chunks[:, None], scoring.power)
    summed = shares.sum(axis=0)
    # After a search in float32 the component can differ in the last digits from the sum of these shares.
    added = {name: scored.weights[name] * getattr(scored.components, name) ** scoring.root for name in COMPONENTS}
    added["chunks"] = scored.weights["chunks"] * summed**scoring.root
    breakdowns = []
    for number, (target, spans, bits) in enumerate(zip(targets, target_spans, target_bits, strict=True)):
        components = {name: float(added[name][number]) for name in COMPONENTS}
        rows = np.flatnonzero(shares[:, number] > 0)
        chunks = _Chunks(
            rows,
            spans[scored.matches.chunks[rows, number]],
            scored.matches.similarities[rows, number],
            components["chunks"] * shares[rows, number] / (summed[number] or 1.0),
        )
        make = partial(_parts, query_chunks, target, bits, chunks, components, scored)
        breakdowns.append(deferred(Breakdown, make, components=components))
    return breakdowns


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The query chunks that contribute to one target."""

    rows: NDArray[np.int64]  # (n,)
    spans: NDArray[np.int32]  # (n, 4) of their best matches
    similarities: NDArray[np.float32]  # (n,)
    contributions: NDArray[np.float64]  # (n,)


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


def pair_columns(pairs: Sequence[SectionPair]) -> PairColumns:
    """Section pairs as arrays, without making those of a search."""
    if isinstance(pairs, _SectionPairs):
        return pairs.columns
    return PairColumns(
        np.array([pair.query_section for pair in pairs], np.int64),
        np.array([pair.target_section for pair in pairs], np.int64),
        np.array([pair.contribution for pair in pairs], np.float64),
        np.array([pair.words for pair in pairs], np.float64),
    )


class _SectionPairs(LazyParts[SectionPair]):
    """The section pairs of one target."""

    def __init__(
        self, columns: PairColumns, passages: Mapping[tuple[int, int], list[ChunkPart]], words: _SharedTerms | None
    ) -> None:
        super().__init__(len(columns.contributions), self._pair)
        self.columns = columns
        self._passages = passages
        self._words = words

    def _pair(self, at: int) -> SectionPair:
        columns = self.columns
        key = int(columns.query_sections[at]), int(columns.target_sections[at])
        parts = sorted(self._passages.get(key, ()), key=lambda part: -part.contribution)
        terms = () if self._words is None else self._words.of_pair(*key)
        return SectionPair(*key, float(columns.contributions[at]), tuple(parts), float(columns.words[at]), terms)


class _SharedTerms:
    """The terms, words and pairs of words, that one target shares with the query."""

    def __init__(
        self,
        places: tuple[TermPlaces, TermPlaces],
        terms: tuple[QueryTerms, QueryTerms],
        components: Mapping[str, float],
        section_weights: NDArray[np.float64] | None,
    ) -> None:
        """Find the terms, and the share of each in the sections of both texts."""
        mine, theirs = places
        self._text = theirs.document.text
        self._names: dict[int, str] = {}
        title = title_span(theirs.document)
        keys, contributions = [], []
        for kind, weighted, table in zip(KINDS_OF_TERMS, terms, theirs.tables(title), strict=True):
            shared = matches(weighted, table)
            keys.append(weighted.terms[shared.terms].astype(np.int64) + (PAIR if kind == "pairs" else 0))
            contributions.append(components[kind] * shared.shares / (shared.shares.sum() or 1.0))
        self._keys, self._all = np.concatenate(keys), np.concatenate(contributions)  # (T,) each
        self._spans = theirs.first_spans(self._keys)  # (T, 2)
        title_of_query = title_span(mine.document) if terms[0].counts is None else None
        self._shares = mine.shares(self._keys, title_of_query, section_weights), theirs.shares(self._keys, title)
        self._mixture: Mixture | DividedMixture | None = None

    def is_long(self, passages: _Passages) -> bool:
        """Whether the texts have too many pairs of sections to divide all terms among them."""
        return is_long(*self._shares, passages.shape)

    def spread(self, passages: _Passages) -> NDArray[np.float64]:
        """(A, B) contribution of all terms to each pair of sections."""
        self._mixture = mixture = Mixture(*self._shares, self._all, passages.matrix())
        return mixture.masses

    def divide(self, passages: _Passages) -> DividedMixture:
        """The contributions of all terms by section of the query."""
        self._mixture = mixture = DividedMixture(*self._shares, self._all, passages.of_sections(), passages.shape[1])
        return mixture

    def of_pair(self, query_section: int, target_section: int) -> tuple[TermPart, ...]:
        """The strongest terms of a pair of sections, strongest first."""
        if self._mixture is None:
            return ()
        return self._strongest(*self._mixture.of_pair(query_section, target_section), N_TERMS)

    def ranked(self) -> Sequence[TermPart]:
        """All terms, strongest first."""
        return _RankedTerms(
            TermColumns(self._keys, self._all), partial(self._strongest, np.arange(len(self._all)), self._all)
        )

    def _strongest(
        self, terms: NDArray[np.int64], contributions: NDArray[np.float64], n_most: int
    ) -> tuple[TermPart, ...]:
        if len(terms) > n_most:  # equal terms at the border are ordered by their names
            chosen = np.flatnonzero(contributions >= -np.partition(-contributions, n_most - 1)[n_most - 1])
            terms, contributions = terms[chosen], contributions[chosen]
        parts = map(TermPart, map(self._name, terms.tolist()), contributions.tolist(), self._keys[terms].tolist())
        return tuple(sorted(parts, key=_strength)[:n_most])

    def _name(self, term: int) -> str:
        name = self._names.get(term)
        if name is None:
            start, stop = self._spans[term].tolist()
            name = self._names[term] = " ".join(self._text[start:stop].split())
        return name


@dataclass(frozen=True, slots=True)
class TermColumns:
    """Terms as arrays (T,), in any order."""

    keys: NDArray[np.int64]
    contributions: NDArray[np.float64]


def term_columns(terms: Sequence[TermPart]) -> TermColumns:
    """Terms as arrays, without making those of a search."""
    if isinstance(terms, _RankedTerms):
        return terms.columns
    contributions = np.array([term.contribution for term in terms], np.float64)
    return TermColumns(np.array([term.key for term in terms], np.int64), contributions)


class _RankedTerms(LazyParts[TermPart]):
    """Terms, strongest first; the first few are found without sorting all."""

    def __init__(self, columns: TermColumns, strongest: Callable[[int], tuple[TermPart, ...]]) -> None:
        super().__init__(len(columns.keys), self._term)
        self.columns = columns
        self._strongest = strongest
        self._first: tuple[TermPart, ...] = ()

    def _term(self, at: int) -> TermPart:
        if at >= len(self._first):
            self._first = self._strongest(min(len(self), max(N_TERMS, 4 * at)))
        return self._first[at]


def _parts(
    query_chunks: Sequence[Chunk],
    target: Document,
    bits: NDArray[np.uint8],
    chunks: _Chunks,
    components: Mapping[str, float],
    scored: Scored,
) -> Mapping[str, Any]:
    passages = _passages(query_chunks, chunks, scored.limits)
    by_pair = _Passages(passages, scored.text.document, target)
    words = places = None
    if scored.words is not None and scored.pairs is not None and components["words"] + components["pairs"] > 0:
        found = segmenter_of(scored.text.language or "none").segment(target.text)
        if scored.skip:
            found = Sections(section_starts(target), bits).kept(found, scored.skip)
        places = scored.text.places, TermPlaces(target, found)
        terms = scored.words, scored.pairs
        words = _SharedTerms(places, terms, components, scored.section_weights)
    besides = _besides(scored.text.kinds), np.flatnonzero(bits)
    rest = sections = None
    if words is None:
        columns = by_pair.columns()
    elif words.is_long(by_pair):
        columns, rest, sections = _divided(words.divide(by_pair), by_pair, besides[0])
    else:
        columns = _columns(by_pair.matrix(), words.spread(by_pair))
    is_beside = np.isin(columns.query_sections, besides[0]) | np.isin(columns.target_sections, besides[1])
    order = np.lexsort((columns.target_sections, columns.query_sections, -columns.contributions, is_beside))
    is_small = columns.contributions < scored.min_pair
    return {
        "pairs": _SectionPairs(columns.of(order[~is_small[order]]), passages, words),
        "terms": () if words is None else words.ranked(),
        "small": _small(columns.of(is_small), rest),
        "sections": sections,
        "places": places,
    }


class _Passages:
    """What the passages of each pair of sections contribute."""

    def __init__(self, passages: Mapping[tuple[int, int], list[ChunkPart]], query: Document, target: Document) -> None:
        self._pairs = np.array([*passages], np.int64).reshape(-1, 2)
        n_rows, n_columns = (self._pairs.max(axis=0, initial=0) + 1).tolist()
        self.shape = max(n_rows, len(query.sections)), max(n_columns, len(target.sections))  # (A, B)
        self._sums = np.array([sum(part.contribution for part in parts) for parts in passages.values()])

    def columns(self) -> PairColumns:
        """The section pairs, without words."""
        rows, columns = self._pairs.T
        return PairColumns(rows, columns, self._sums, np.zeros_like(self._sums))

    def matrix(self) -> NDArray[np.float64]:
        """(A, B)."""
        found = np.zeros(self.shape)
        found[self._pairs[:, 0], self._pairs[:, 1]] = self._sums
        return found

    def of_sections(self) -> NDArray[np.float64]:
        """(A,) sums by section of the query."""
        return np.bincount(self._pairs[:, 0], self._sums, minlength=self.shape[0]).astype(np.float64)

    def row(self, section: int) -> NDArray[np.float64]:
        """(B,) of one section of the query."""
        is_own = self._pairs[:, 0] == section
        return np.bincount(self._pairs[is_own, 1], self._sums[is_own], minlength=self.shape[1]).astype(np.float64)


def _columns(passages: NDArray[np.float64], words: NDArray[np.float64]) -> PairColumns:
    """The section pairs with a contribution, in reading order, from what passages and terms (A, B) contribute."""
    total = passages + words
    rows, columns = np.nonzero(total)
    return PairColumns(rows, columns, total[rows, columns], words[rows, columns])


def _divided(
    mixture: DividedMixture, passages: _Passages, besides: Sequence[int]
) -> tuple[PairColumns, SmallPairs | None, SectionSums]:
    """The pairs of the strongest sections of a long query, the sum of the other sections, and that of each."""
    sums = SectionSums(passages.of_sections() + mixture.masses, mixture.masses)
    is_beside = np.isin(np.arange(len(mixture.masses)), besides)
    divided, others = np.split(np.lexsort((-sums.contributions, is_beside)), [N_DIVIDED])
    found = []
    for section in np.sort(divided).tolist():
        of_passages = passages.row(section)
        words = mixture.divide(section, of_passages)
        total = of_passages + words
        columns = np.flatnonzero(total)
        found.append((np.full(len(columns), section), columns, total[columns], words[columns]))
    others = others[sums.contributions[others] > 0]
    rest = SmallPairs(len(others), float(sums.contributions[others].sum()), float(sums.words[others].sum()))
    return PairColumns(*map(np.concatenate, zip(*found, strict=True))), rest if len(others) else None, sums


def _besides(kinds: Sequence[SectionKind]) -> list[int]:
    """The positions of the sections that are not body, which are shown after all others."""
    return [number for number, kind in enumerate(kinds) if kind is not SectionKind.BODY]


def _small(columns: PairColumns, rest: SmallPairs | None) -> SmallPairs | None:
    if not len(columns.words):
        return rest
    n_pairs, contribution, words = (0, 0.0, 0.0) if rest is None else (rest.n_pairs, rest.contribution, rest.words)
    return SmallPairs(
        n_pairs + len(columns.words),
        contribution + float(columns.contributions.sum()),
        words + float(columns.words.sum()),
    )


def _strength(part: TermPart) -> tuple[float, str]:
    return -part.contribution, part.term


def _passages(
    query_chunks: Sequence[Chunk], chunks: _Chunks, limits: Thresholds
) -> dict[tuple[int, int], list[ChunkPart]]:
    parts: dict[tuple[int, int], list[ChunkPart]] = defaultdict(list)
    for number, row in enumerate(chunks.rows.tolist()):
        section, start, stop, _ = chunks.spans[number].tolist()
        chunk = query_chunks[row]
        parts[chunk.section, section].append(
            ChunkPart(
                query=Span(chunk.start, chunk.stop),
                target=Span(start, stop),
                similarity=float(chunks.similarities[number]),
                threshold=float(limits.chunks[row]),
                weight=float(limits.weights[row]),
                contribution=float(chunks.contributions[number]),
            )
        )
    return parts
