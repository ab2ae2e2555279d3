"""A score is broken down into the parts of `engine.scoring.parts`.

A component c adds v_c c^r to the score (`engine.scoring.evidence`); a part with a share of the
component has the same share of this contribution. So contributions sum to the score.

Letters in shapes: I query chunks, R targets, C chunks of one, P section pairs, T shared terms, n their places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.scoring.evidence import COMPONENTS, Components, Matches, Scoring, Thresholds, margins
from engine.scoring.parts import (
    N_TERMS,
    NO_SMALL_PAIRS,
    Breakdown,
    ChunkPart,
    PairColumns,
    RankedTerms,
    SectionPair,
    SectionPairs,
    SectionSums,
    SmallPairs,
    TermColumns,
    TermPart,
)
from engine.text.document import Document, deferred
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Chunk, Span
from engine.words.apart import Sections, section_starts, title_span
from engine.words.likelihood import QueryTerms, matches
from engine.words.mixture import N_DIVIDED, DividedMixture, Mixture, is_long
from engine.words.places import PAIR, QueryText, TermPlaces
from engine.words.segmenter import segmenter_of

KINDS_OF_TERMS = ("words", "pairs")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query with all values from the reference that scoring a document needs."""

    vectors: EncodedDocument  # with pooled chunks if the query has very many
    chunk_weights: NDArray[np.float64]  # (I,) w_i
    limits: Thresholds
    words: QueryTerms | None
    pairs: QueryTerms | None
    weights: dict[str, float]  # v_c of the components
    text: QueryText  # without common sentences
    section_weights: NDArray[np.float64] | None = None  # (A,) of the sections of the query; None where all are 1
    skip: int = 0  # bits of the kinds of sections of targets that take no part, see `engine.text.section_kinds`


@dataclass(frozen=True, slots=True)
class Scored:
    """The values that the scores of R targets were computed from."""

    query: Prepared
    matches: Matches  # (I, R)
    components: Components  # of R targets
    scoring: Scoring
    min_pair: float = 0.0  # lowest contribution of a section pair that is a part of its own


def break_down(
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
    query, scoring = scored.query, scored.scoring
    limits = query.limits
    shares = limits.weights[:, None] * margins(scored.matches.similarities, scored.matches.openings, limits, scoring)
    summed = shares.sum(axis=0)
    # After a search in float32 the component can differ in the last digits from the sum of these shares.
    added = {name: query.weights[name] * getattr(scored.components, name) ** scoring.root for name in COMPONENTS}
    added["chunks"] = query.weights["chunks"] * summed**scoring.root
    breakdowns = []
    for number, (target, spans, bits) in enumerate(zip(targets, target_spans, target_bits, strict=True)):
        components = {name: float(added[name][number]) for name in COMPONENTS}
        rows = np.flatnonzero(shares[:, number] > 0)
        chunks = _Chunks(
            rows,
            spans[scored.matches.chunks[rows, number]],
            scored.matches.similarities[rows, number],
            scored.matches.openings[rows, number],
            components["chunks"] * shares[rows, number] / (summed[number] or 1.0),
        )
        make = partial(_parts, target, bits, chunks, components, query, scored.min_pair)
        breakdowns.append(deferred(Breakdown, make, components=components))
    return breakdowns


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The query chunks that contribute to one target."""

    rows: NDArray[np.int64]  # (n,)
    spans: NDArray[np.int32]  # (n, 4) of their best matches
    similarities: NDArray[np.float32]  # (n,)
    openings: NDArray[np.float32]  # (n,)
    contributions: NDArray[np.float64]  # (n,)


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
        self._target = theirs
        title = title_span(theirs.document)
        keys, contributions = [], []
        for kind, weighted, table in zip(KINDS_OF_TERMS, terms, theirs.tables(title), strict=True):
            shared, shares = matches(weighted, table)
            keys.append(weighted.terms[shared.terms].astype(np.int64) + (PAIR if kind == "pairs" else 0))
            contributions.append(components[kind] * shares / (shares.sum() or 1.0))
        self._keys, self._all = np.concatenate(keys), np.concatenate(contributions)  # (T,) each
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
        self._mixture = mixture = DividedMixture(*self._shares, self._all, passages.of_sections())
        return mixture

    def of_pair(self, query_section: int, target_section: int) -> tuple[TermPart, ...]:
        if self._mixture is None:
            return ()
        return self._strongest(*self._mixture.of_pair(query_section, target_section), N_TERMS)

    def ranked(self) -> Sequence[TermPart]:
        return RankedTerms(
            TermColumns(self._keys, self._all), partial(self._strongest, np.arange(len(self._all)), self._all)
        )

    def _strongest(
        self, terms: NDArray[np.int64], contributions: NDArray[np.float64], n_most: int
    ) -> tuple[TermPart, ...]:
        if len(terms) > n_most:  # equal terms at the border are ordered by their names
            chosen = np.flatnonzero(contributions >= -np.partition(-contributions, n_most - 1)[n_most - 1])
            terms, contributions = terms[chosen], contributions[chosen]
        keys, text = self._keys[terms], self._target.document.text
        spans = self._target.first_spans(keys)
        names = (" ".join(text[start:stop].split()) for start, stop in zip(*spans.T.tolist(), strict=True))
        parts = map(TermPart, names, contributions.tolist(), keys.tolist())
        return tuple(sorted(parts, key=lambda part: (-part.contribution, part.term))[:n_most])


def _parts(
    target: Document,
    bits: NDArray[np.uint8],
    chunks: _Chunks,
    components: Mapping[str, float],
    query: Prepared,
    min_pair: float,
) -> Mapping[str, Any]:
    passages = _passages(query.vectors.chunk_spans, chunks, query.limits)
    by_pair = _Passages(passages, query.text.document, target)
    words = places = None
    if query.words is not None and query.pairs is not None and components["words"] + components["pairs"] > 0:
        segmented = segmenter_of(query.text.language or "none").segment(target.text)
        if query.skip:
            segmented = Sections(section_starts(target), bits).kept(segmented, query.skip)
        terms = query.words, query.pairs
        is_shared = np.concatenate([terms[0].may_have(segmented.words), terms[1].may_have(segmented.pairs)])
        places = query.text.places, TermPlaces(target, segmented, np.flatnonzero(is_shared))
        words = _SharedTerms(places, terms, components, query.section_weights)
    # Sections that are not body are shown after all others.
    mine, theirs = (np.zeros(n_sections, bool) for n_sections in by_pair.shape)
    mine[: len(query.text.kinds)] = [kind is not SectionKind.BODY for kind in query.text.kinds]
    theirs[: len(bits)] = bits
    rest, sections = NO_SMALL_PAIRS, None
    if words is None:
        columns = by_pair.columns()
    elif words.is_long(by_pair):
        columns, rest, sections = _divided(words.divide(by_pair), by_pair, mine)
    else:
        columns = _columns(by_pair.matrix(), words.spread(by_pair))
    is_beside = mine[columns.query_sections] | theirs[columns.target_sections]
    order = np.lexsort((columns.target_sections, columns.query_sections, -columns.contributions, is_beside))
    is_small = columns.contributions < min_pair
    shown, small = columns.of(order[~is_small[order]]), rest.with_all(columns.of(is_small))
    return {
        "pairs": SectionPairs(shown, partial(_pair, shown, passages, words)),
        "terms": () if words is None else words.ranked(),
        "small": small if small.n_pairs else None,
        "sections": sections,
        "places": places,
    }


def _pair(
    columns: PairColumns, passages: Mapping[tuple[int, int], list[ChunkPart]], words: _SharedTerms | None, at: int
) -> SectionPair:
    key = int(columns.query_sections[at]), int(columns.target_sections[at])
    parts = sorted(passages.get(key, ()), key=lambda part: -part.contribution)
    terms = () if words is None else words.of_pair(*key)
    return SectionPair(*key, float(columns.contributions[at]), tuple(parts), float(columns.words[at]), terms)


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
        sums = np.zeros(self.shape)
        sums[self._pairs[:, 0], self._pairs[:, 1]] = self._sums
        return sums

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
    mixture: DividedMixture, passages: _Passages, is_beside: NDArray[np.bool_]
) -> tuple[PairColumns, SmallPairs, SectionSums]:
    """The pairs of the strongest sections of a long query, the sum of the other sections, and that of each."""
    sums = SectionSums(passages.of_sections() + mixture.masses, mixture.masses)
    divided, others = np.split(np.lexsort((-sums.contributions, is_beside)), [N_DIVIDED])
    parts = []
    for section in np.sort(divided).tolist():
        of_passages = passages.row(section)
        words = mixture.divide(section, of_passages)
        total = of_passages + words
        columns = np.flatnonzero(total)
        parts.append((np.full(len(columns), section), columns, total[columns], words[columns]))
    others = others[sums.contributions[others] > 0]
    rest = SmallPairs(len(others), float(sums.contributions[others].sum()), float(sums.words[others].sum()))
    return PairColumns(*map(np.concatenate, zip(*parts, strict=True))), rest, sums


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
                opening=float(chunks.openings[number]),
                threshold=float(limits.chunks[row]),
                weight=float(limits.weights[row]),
                contribution=float(chunks.contributions[number]),
            )
        )
    return parts
