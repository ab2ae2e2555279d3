"""One query compared with every other document of an index, and the scores that follow; nothing is encoded here.

The score is that of `engine.scoring.evidence`, over dense tables: parts of either document can be left out while
thresholds and statistics stay. Letters in shapes: I query chunks, N targets, D width, Q terms of the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from engine.encoders.encoder import Vectors
from engine.index import Index
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Components, Scoring, best_chunks, chunk_component, combine, thresholds
from engine.search.query import Query
from engine.store.snapshot import Positions
from engine.words.counts import TermTable, WordTables
from engine.words.likelihood import QueryTerms, TermStatistics, matches, query_terms, scores

_BLOCK_DOCUMENTS = 256  # documents whose chunks are in memory at once


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of one query with every target; I can be 0."""

    best: Vectors  # (I, N) c_i(t), the best match of each chunk in each target
    openings: Vectors  # (I, N) similarity of each chunk to the opening of each target
    limits: tuple[Vectors, Vectors, Vectors, Vectors]  # (I,) theta, phi, s_i(q), a_i
    weights: NDArray[np.float64]  # (I,) w_i
    words: NDArray[np.float64]  # (N,) the component of the words
    pairs: NDArray[np.float64]  # (N,) the component of the pairs of words

    def of_chunks(self, kept: NDArray[np.bool_], words: NDArray[np.float64], pairs: NDArray[np.float64]) -> Matches:
        """The matches of a query with only the kept (I,) chunks, and other words."""
        theta, phi, own, opening = (limit[kept] for limit in self.limits)
        limits = theta, phi, own, opening
        return Matches(self.best[kept], self.openings[kept], limits, self.weights[kept], words, pairs)


@dataclass(frozen=True, slots=True)
class Placed:
    """The place of one target in a ranking."""

    score: float
    rank: float  # from 1; the mean rank of all targets with the same score


@dataclass(frozen=True, slots=True)
class TargetTerms:
    """The words, or the pairs of words, of a query in N targets."""

    query: QueryTerms
    weights: csr_array  # (N, Q) b_t(d) of `engine.words.likelihood`
    statistics: TermStatistics

    def scores(self, table: TermTable) -> NDArray[np.float64]:
        """The component (N,) of a part of the query; a term without a weight in the whole query has none in a part."""
        fewer = query_terms(table, self.statistics)
        weights = np.zeros(len(self.query.terms))
        at = np.minimum(np.searchsorted(self.query.terms, fewer.terms), max(0, len(weights) - 1))
        is_weighed = self.query.terms[at] == fewer.terms if len(weights) else np.zeros(len(at), bool)
        weights[at[is_weighed]] = fewer.weights[is_weighed]
        return np.asarray(np.minimum(1.0, self.weights @ weights))


class Corpus:
    """An index whose documents are all scored, by its own reference; keeps its term counts in memory."""

    def __init__(self, index: Index, scoring: Scoring) -> None:
        self.snapshot = index.snapshot
        self.scoring = scoring
        self._searcher = index.searcher(scoring)

    @property
    def language(self) -> str:
        """The language by which words are segmented; "none" for an index without words."""
        return self.snapshot.language or "none"

    @cached_property
    def _words(self) -> WordTables | None:
        return self.snapshot.words(np.arange(self.snapshot.n_documents)) if self.snapshot.language else None

    def prepare(self, query: Query) -> Prepared:
        """See `Searcher.prepare`."""
        return self._searcher.prepare(query)

    def find_matches(self, prepared: Prepared, targets: Positions) -> Matches:
        """Compare a query with the (N,) targets, which the query itself is not among."""
        chunks = prepared.vectors.chunks
        best = [
            best_chunks(chunks, *self.snapshot.chunk_vectors(targets[first : first + _BLOCK_DOCUMENTS]))
            for first in range(0, len(targets), _BLOCK_DOCUMENTS)
        ]
        words = pairs = np.zeros(len(targets))
        if prepared.words is not None and prepared.pairs is not None and self._words is not None:
            tables = self._words.of(targets)
            words, pairs = scores(prepared.words, tables.words), scores(prepared.pairs, tables.pairs)
        every, openings = (np.concatenate(blocks, axis=1) for blocks in zip(*best, strict=True))
        limits = prepared.limits.chunks, prepared.limits.joined, prepared.limits.own, prepared.limits.opening
        return Matches(every, openings, limits, prepared.chunk_weights, words, pairs)

    def target_terms(self, prepared: Prepared, targets: Positions) -> tuple[TargetTerms, TargetTerms] | None:
        """Words and pairs of a query in targets; None for an index without words."""
        if prepared.words is None or prepared.pairs is None or self._words is None:
            return None
        tables, statistics = self._words.of(targets), self.snapshot.reference.statistics
        return (
            _target_terms(prepared.words, tables.words, statistics.words),
            _target_terms(prepared.pairs, tables.pairs, statistics.pairs),
        )

    def score_all(self, found: Matches) -> NDArray[np.float64]:
        """The score of every target; (N,) in [0, 1], all 0 for a query without chunks."""
        if not len(found.best):
            return np.zeros(found.best.shape[1])
        limits = thresholds(*found.limits, found.weights, self.scoring)
        chunks = chunk_component(found.best, found.openings, limits, self.scoring)
        return self._combined(Components(chunks, found.words, found.pairs))

    def score_target(self, prepared: Prepared, chunks: Vectors, words: WordTables | None) -> float:
        """The score of one document that need not be in the index, of (J, D) chunk vectors."""
        best, openings = best_chunks(prepared.vectors.chunks, chunks, np.zeros(1, np.int64))
        by_words = by_pairs = np.zeros(1)
        if words is not None and prepared.words is not None and prepared.pairs is not None:
            by_words, by_pairs = scores(prepared.words, words.words), scores(prepared.pairs, words.pairs)
        chunks_of = chunk_component(best, openings, prepared.limits, self.scoring)
        components = Components(chunks_of, by_words, by_pairs)
        return float(self._combined(components)[0])

    def _combined(self, components: Components) -> NDArray[np.float64]:
        weights = self.scoring.weights(words=self.snapshot.language is not None)
        return combine(components, weights, self.scoring.root)


def _target_terms(query: QueryTerms, table: TermTable, statistics: TermStatistics) -> TargetTerms:
    found, shares = matches(query, table)
    weights = shares / query.weights[found.terms]
    shape = table.n_documents, len(query.terms)
    return TargetTerms(query, csr_array((weights, (found.documents, found.terms)), shape=shape), statistics)


def place(scores: NDArray[np.float64], column: int) -> Placed:
    """The place of one of the (N,) targets."""
    own = scores[column]
    n_above = int(np.count_nonzero(scores > own))
    n_equal = int(np.count_nonzero(scores == own)) - 1
    return Placed(float(own), 1 + n_above + n_equal / 2)
