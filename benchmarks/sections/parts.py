"""The parts of one document of a hit, the places of its terms, and the orders in which parts are removed.

Nothing is scored here. Letters in shapes: C chunks of the document, n occurrences of terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, ModelExplanation
from engine.scoring.parts import Breakdown, TermPart, pair_columns
from engine.search.query import Query
from engine.text.document import Document
from engine.text.segmentation import Chunk, Span
from engine.words.apart import repeats, title_span
from engine.words.counts import WordTables, counted
from engine.words.places import PAIR
from engine.words.segmenter import Terms, WordSegmenter, segmenter_of


def term_places(
    found: Terms, terms: Iterable[TermPart], title: Span | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Spread the contribution of each term over its occurrences in a text, in proportion to their counts.

    Returns: (n, 2) spans and (n,) contributions.
    """
    contributions = {part.key: part.contribution for part in terms}
    words = {key: value for key, value in contributions.items() if key < PAIR}
    pairs = {key - PAIR: value for key, value in contributions.items() if key >= PAIR}
    kinds = (found.words, found.word_spans, words), (found.pairs, found.pair_spans, pairs)
    shares = [_shares(own, repeats(spans, title), by_term) for own, spans, by_term in kinds]
    return np.concatenate([found.word_spans, found.pair_spans]), np.concatenate(shares)


def _shares(
    terms: NDArray[np.uint32], times: NDArray[np.int64], contributions: dict[int, float]
) -> NDArray[np.float64]:
    distinct, place = np.unique(terms, return_inverse=True)
    counts = np.bincount(place, times, minlength=len(distinct))
    shares = np.array([contributions.get(term, 0.0) for term in distinct.tolist()]) / counts
    return shares[place] * times


Order = NDArray[np.int64]  # a permutation of parts, first removed first


class Side(StrEnum):
    """The document of a hit whose parts are removed."""

    QUERY = "query"
    TARGET = "target"


class OrderKind(StrEnum):
    """The criterion by which parts are removed first."""

    BREAKDOWN = "breakdown"  # the largest contribution to the score
    COSINE = "cosine"  # the largest plain cosine to a chunk of the other document
    RANDOM = "random"
    MODEL = "model"  # the largest weight of the encoder's own explanation, where it has one


@dataclass(frozen=True, slots=True)
class Parts:
    """The chunks of one document of a hit, its parts; every array is (C,)."""

    n_tokens: NDArray[np.int64]
    contribution: NDArray[np.float64]  # to the score, from the breakdown
    cosine: NDArray[np.float64]
    model: NDArray[np.float64] | None = None  # weights of the explanation of the model; None without one

    def __len__(self) -> int:
        return len(self.n_tokens)

    def chunks_of(self, parts: Order) -> NDArray[np.bool_]:
        """(C,) True for the chunks of some parts."""
        return np.isin(np.arange(len(self)), parts)


class ChunkTerms:
    """The terms of a document, by the chunks that they occur in."""

    def __init__(self, document: Document, chunks: Sequence[Chunk], segmenter: WordSegmenter) -> None:
        """Segment the text of a document that is cut into chunks, in reading order."""
        self.terms = segmenter.segment(document.text)
        self._title = title_span(document)
        self.n_chunks = len(chunks)
        self.of_word, self.of_pair = (
            _chunks_at(spans, chunks) for spans in (self.terms.word_spans, self.terms.pair_spans)
        )

    def counts(self, kept: NDArray[np.bool_]) -> WordTables:
        """The term counts of a text of the kept (C,) chunks alone; a pair counts where both of its words are kept."""
        is_kept = np.append(kept, False)  # for terms in no chunk
        words, pairs = is_kept[self.of_word].all(axis=1), is_kept[self.of_pair].all(axis=1)
        found = self.terms
        of_kept = Terms(found.words[words], found.word_spans[words], found.pairs[pairs], found.pair_spans[pairs])
        return counted([of_kept], [self._title])

    def spread(self, terms: Iterable[TermPart]) -> NDArray[np.float64]:
        """(C,) contributions of terms, each spread over its occurrences; some may be in no chunk."""
        _, contributions = term_places(self.terms, terms, self._title)
        by_chunk = np.zeros(self.n_chunks + 1)
        np.add.at(by_chunk, np.concatenate([self.of_word[:, 0], self.of_pair[:, 0]]), contributions)
        return by_chunk[:-1]


def _chunks_at(spans: NDArray[np.int64], chunks: Sequence[Chunk]) -> NDArray[np.int64]:
    """(n, 2) number of the chunk that holds the first and the last character of each span; -1 for none."""
    starts, stops = (np.array([getattr(chunk, name) for chunk in chunks]) for name in ("start", "stop"))
    ends = np.stack([spans[:, 0], spans[:, 1] - 1], axis=1)
    at = np.searchsorted(starts, ends, side="right") - 1
    return np.where((at >= 0) & (ends < stops[at]), at, -1)


def parts_of(
    breakdown: Breakdown, side: Side, query: Query, target: Query, language: str, model: ModelExplanation | None = None
) -> Parts:
    """The chunks of one document of a hit.

    `query` has the chunks that were searched with, `target` its stored vectors. The breakdown lists passages, and the
    terms that both documents have, without their places.
    """
    cosines = query.vectors.chunks @ target.vectors.chunks.T
    own, cosine = (query, cosines.max(axis=1)) if side is Side.QUERY else (target, cosines.max(axis=0))
    segmenter = segmenter_of(language)
    contributions = _of_passages(breakdown, side, own.vectors)
    spread = ChunkTerms(own.document, own.vectors.chunk_spans, segmenter).spread(breakdown.terms)
    contributions += _scaled_to_sections(spread, breakdown, side, own.vectors.chunk_spans)
    by_model = None if model is None else _of_model(model, side, own.vectors.chunk_spans)
    n_tokens = np.array([chunk.n_tokens for chunk in own.vectors.chunk_spans], np.int64)
    return Parts(n_tokens, contributions, cosine.astype(np.float64), by_model)


def _scaled_to_sections(
    spread: NDArray[np.float64], breakdown: Breakdown, side: Side, chunks: Sequence[Chunk]
) -> NDArray[np.float64]:
    """The contributions of terms (C,), scaled so that the chunks of a section sum to its words in the breakdown."""
    if not len(breakdown.pairs):
        return spread
    section_of, columns = np.array([chunk.section for chunk in chunks]), pair_columns(breakdown.pairs)
    numbers = columns.query_sections if side is Side.QUERY else columns.target_sections
    n_sections = max(section_of.max(), numbers.max()) + 1
    wanted = np.bincount(numbers, columns.words, minlength=n_sections)
    there = np.bincount(section_of, spread, minlength=n_sections)
    scale = np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)
    return np.asarray(spread * scale[section_of])


def _of_model(model: ModelExplanation, side: Side, chunks: Sequence[Chunk]) -> NDArray[np.float64]:
    """(C,) weights of the explanation; of a pooled chunk of a long query, the sum of those that it stands for."""
    is_query = side is Side.QUERY
    own = model.query_chunks if is_query else model.target_chunks
    weights = model.query_weights if is_query else model.target_weights
    at = _chunks_at(np.array([[chunk.start, chunk.start + 1] for chunk in own]), chunks)[:, 0]
    return np.bincount(at[at >= 0], weights[at >= 0], minlength=len(chunks)).astype(np.float64)


def _of_passages(breakdown: Breakdown, side: Side, document: EncodedDocument) -> NDArray[np.float64]:
    """(C,) contributions of chunks in the breakdown, found by their spans; a target's chunk can occur many times."""
    number = {Span(chunk.start, chunk.stop): i for i, chunk in enumerate(document.chunk_spans)}
    contributions = np.zeros(len(document.chunk_spans))
    for pair in breakdown.pairs:
        for part in pair.parts:
            contributions[number[part.query if side is Side.QUERY else part.target]] += part.contribution
    return contributions


def removal_orders(parts: Parts, n_random: int, rng: np.random.Generator) -> dict[OrderKind, list[Order]]:
    """The orders to compare: one of the breakdown, one of the cosine, some at random, and one of the encoder.

    Parts without a contribution come after all others in the order of the breakdown, at random.
    """
    shuffled = rng.permutation(len(parts))
    by_contribution = shuffled[np.argsort(-parts.contribution[shuffled], kind="stable")]
    orders = {
        OrderKind.BREAKDOWN: [by_contribution],
        OrderKind.COSINE: [np.argsort(-parts.cosine, kind="stable")],
        OrderKind.RANDOM: [rng.permutation(len(parts)) for _ in range(n_random)],
    }
    if parts.model is not None:
        orders[OrderKind.MODEL] = [np.argsort(-parts.model, kind="stable")]
    return orders
