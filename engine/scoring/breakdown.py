"""The parts of a score: which section matches which, by which passages and words, for how much. Values and functions.

A component c adds v_c c^r to the score (`engine.scoring.evidence`); a part with a share of the
component has the same share of this contribution. So contributions sum to the score.

Letters in shapes: I query chunks, R targets, C chunks of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.lazy import Deferred, deferred
from engine.scoring.evidence import COMPONENTS, Components, Scoring, Thresholds, margin
from engine.scoring.similarity import Matches
from engine.text.document import Document
from engine.text.section_kinds import besides
from engine.text.spans import Chunk, Span
from engine.words.alignment import align, occurrences, section_starts
from engine.words.apart import Sections
from engine.words.counts import counted
from engine.words.likelihood import QueryTerms, matches
from engine.words.segmenter import Terms, segmenter_of
from engine.words.titles import title_span

N_TERMS = 10  # terms listed for a pair of sections


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
class DocumentPart:
    """The contribution of the similarity of the document vectors."""

    similarity: float
    threshold: float
    weight: float  # contribution at similarity 1
    contribution: float


@dataclass(frozen=True, slots=True)
class SmallPairs:
    """The section pairs below the minimum contribution of a search, as one part."""

    n_pairs: int  # at least 1
    contribution: float
    words: float  # the amount of the contribution that words add


@dataclass(frozen=True, slots=True)
class Breakdown(Deferred):
    """All parts of one score; their contributions sum to it.

    In the result of a search, pairs, terms and small pairs are computed on first access.
    """

    pairs: tuple[SectionPair, ...]  # pairs of body sections, then the others; each group strongest first
    document: DocumentPart | None  # None where the scoring gives the document vectors no weight
    terms: tuple[TermPart, ...]  # all terms, over the whole documents, strongest first
    components: Mapping[str, float]  # contribution of chunks, document, words and pairs of words
    small: SmallPairs | None = None  # the section pairs below the minimum of the search; None where there are none

    @property
    def score(self) -> float:
        """The sum of the parts."""
        others = (one.contribution for one in (self.document, self.small) if one is not None)
        return sum(pair.contribution for pair in self.pairs) + sum(others)

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
    cosines: Vectors | None  # (R,) of the document vectors; None where they have no weight
    weights: Mapping[str, float]  # v_c
    scoring: Scoring
    words: QueryTerms | None
    pairs: QueryTerms | None
    language: str | None
    text: str | None = None  # of the query, with blanks in place of common sentences; by default the whole text
    section_weights: NDArray[np.float64] | None = None  # (A,) of the sections of the query; None where all are 1
    min_pair: float = 0.0  # lowest contribution of a section pair that is a part of its own
    left_out: NDArray[np.bool_] | None = None  # (A,) sections of the query that take no part; None where all do
    skip: int = 0  # bits of the kinds of sections of targets that take no part, see `engine.text.section_kinds`


def break_down(
    query: Document,
    query_chunks: Sequence[Chunk],
    targets: Sequence[Document],
    target_spans: Sequence[NDArray[np.int32]],
    scored: Scored,
) -> list[Breakdown]:
    """Break the scores of targets down into parts.

    Args:
        query: the document that was searched with.
        query_chunks: I chunks of it.
        targets: R documents.
        target_spans: for each, (C, 4) section, start, stop, tokens of its chunks.
        scored: the values that their scores were computed from.

    Returns:
        R breakdowns, in the order of the targets.
    """
    limits, scoring = scored.limits, scored.scoring
    shares = limits.weights[:, None] * margin(scored.matches.similarities, limits.chunks[:, None], scoring.power)
    summed = shares.sum(axis=0)
    # After a search in float32 the component can differ in the last digits from the sum of these shares.
    added = {name: scored.weights[name] * getattr(scored.components, name) ** scoring.root for name in COMPONENTS}
    added["chunks"] = scored.weights["chunks"] * summed**scoring.root
    blanked = query.text if scored.text is None else scored.text
    text = _QueryText(query, scored.language, blanked, scored.section_weights, scored.left_out)
    breakdowns = []
    for number, (target, spans) in enumerate(zip(targets, target_spans, strict=True)):
        components = {name: float(added[name][number]) for name in COMPONENTS}
        rows = np.flatnonzero(shares[:, number] > 0)
        chunks = _Chunks(
            rows,
            spans[scored.matches.chunks[rows, number]],
            scored.matches.similarities[rows, number],
            components["chunks"] * shares[rows, number] / (summed[number] or 1.0),
        )
        make = partial(_parts, text, query_chunks, target, chunks, components, scored)
        document = None
        if scored.cosines is not None:
            weight, added_by_document = scored.weights["document"], components["document"]
            document = DocumentPart(float(scored.cosines[number]), limits.document, weight, added_by_document)
        breakdowns.append(deferred(Breakdown, make, document=document, components=components))
    return breakdowns


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The query chunks that contribute to one target."""

    rows: NDArray[np.int64]  # (n,)
    spans: NDArray[np.int32]  # (n, 4) of their best matches
    similarities: NDArray[np.float32]  # (n,)
    contributions: NDArray[np.float64]  # (n,)


class _QueryText:
    """The text of a query, segmented when its words are first needed, once for all targets."""

    def __init__(
        self,
        document: Document,
        language: str | None,
        text: str,
        weights: NDArray[np.float64] | None,
        left_out: NDArray[np.bool_] | None,
    ) -> None:
        self.document = document
        self.weights = weights
        self._left_out = left_out
        self._text = text
        self.language = language
        self._terms: Terms | None = None

    @cached_property
    def besides(self) -> frozenset[int]:
        return besides(self.document)

    @property
    def terms(self) -> Terms:
        if self._terms is None:
            self._terms = segmenter_of(self.language or "none").segment(self._text)
            if self._left_out is not None:
                sections = Sections(section_starts(self.document), self._left_out.astype(np.uint8))
                self._terms = sections.kept(self._terms, 1)
        return self._terms


def _parts(
    text: _QueryText,
    query_chunks: Sequence[Chunk],
    target: Document,
    chunks: _Chunks,
    components: Mapping[str, float],
    scored: Scored,
) -> Mapping[str, Any]:
    passages = _passages(query_chunks, chunks, scored.limits)
    words: dict[tuple[int, int], list[TermPart]] = defaultdict(list)
    of_pairs: dict[tuple[int, int], float] = defaultdict(float)
    terms: list[TermPart] = []
    if scored.words is not None and scored.pairs is not None and components["words"] + components["pairs"] > 0:
        found = segmenter_of(text.language or "none").segment(target.text)
        if scored.skip:
            found = Sections.of_kinds(target).kept(found, scored.skip)
        for kind, query_terms in (("words", scored.words), ("pairs", scored.pairs)):
            _add_terms(text, target, found, kind, query_terms, components[kind], (words, of_pairs, terms))
    keys = passages.keys() | of_pairs.keys()
    pairs = [
        SectionPair(
            *key,
            sum(part.contribution for part in passages.get(key, ())) + of_pairs.get(key, 0.0),
            tuple(sorted(passages.get(key, ()), key=lambda part: -part.contribution)),
            of_pairs.get(key, 0.0),
            tuple(sorted(words.get(key, ()), key=_strength)[:N_TERMS]),
        )
        for key in keys
    ]
    beside = besides(target)

    def place(pair: SectionPair) -> tuple[bool, float, int, int]:
        is_beside = pair.query_section in text.besides or pair.target_section in beside
        return is_beside, -pair.contribution, pair.query_section, pair.target_section

    listed = sorted((pair for pair in pairs if pair.contribution >= scored.min_pair), key=place)
    small = _small([pair for pair in pairs if pair.contribution < scored.min_pair])
    return {"pairs": tuple(listed), "terms": tuple(sorted(terms, key=_strength)), "small": small}


def _small(pairs: Sequence[SectionPair]) -> SmallPairs | None:
    if not pairs:
        return None
    return SmallPairs(len(pairs), sum(pair.contribution for pair in pairs), sum(pair.words for pair in pairs))


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


def _add_terms(
    text: _QueryText,
    target: Document,
    found: Terms,
    kind: str,
    query_terms: QueryTerms,
    component: float,
    into: tuple[dict[tuple[int, int], list[TermPart]], dict[tuple[int, int], float], list[TermPart]],
) -> None:
    """Add contributions of one kind of term: the strongest by section pair, sums of section pairs, and all terms."""
    words, sums, terms = into
    title = title_span(target)
    shared = matches(query_terms, getattr(counted([found], [title]), kind))
    if not len(shared.terms):
        return
    names = query_terms.terms[shared.terms]
    contributions = component * shared.shares / shared.shares.sum()
    title_of_query = title_span(text.document) if query_terms.counts is None else None
    mine = occurrences(text.terms, kind, section_starts(text.document), title_of_query)
    theirs = occurrences(found, kind, section_starts(target), title)
    order = np.argsort(names)
    names, contributions = names[order], contributions[order]
    seen, first = np.unique(theirs.terms, return_index=True)
    spans = theirs.spans[first[np.searchsorted(seen, names)]].tolist()
    written = [" ".join(target.text[start:stop].split()) for start, stop in spans]
    terms.extend(map(TermPart, written, contributions.tolist()))
    aligned = align(mine, theirs, names, contributions, text.weights)
    n = len(target.sections) + 1
    keys, at = np.unique(aligned.query_sections * n + aligned.target_sections, return_inverse=True)
    for key, total in zip(keys.tolist(), np.bincount(at, aligned.contributions).tolist(), strict=True):
        sums[divmod(key, n)] += total
    # The strongest few of each pair of sections: sorted by pair, then falling contribution.
    strongest = np.lexsort((-aligned.contributions, at))
    rank = np.arange(len(at)) - np.searchsorted(at[strongest], at[strongest])
    for place in strongest[rank < N_TERMS].tolist():
        term = written[aligned.terms[place]]
        words[divmod(int(keys[at[place]]), n)].append(TermPart(term, float(aligned.contributions[place])))
