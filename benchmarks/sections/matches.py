"""What the chunks of one query find in every target, and the scores that follow; nothing is encoded here.

The score is the engine's own (`engine.scoring.evidence`), from its own functions, over a dense table instead of
ranked lists: so parts of either document can be left out, and everything else stays as the corpus has it.

Letters in shapes: I query chunks, N targets, D width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.scoring.evidence import (
    Scoring,
    chunk_weights,
    crowd_similarity,
    document_crowd_similarity,
    exact_scores,
    thresholds,
)
from engine.scoring.lists import segment_max, top_documents
from engine.store.snapshot import Positions, Snapshot

_BLOCK_DOCUMENTS = 256  # whose chunks are in memory at once


@dataclass(frozen=True, slots=True)
class Matches:
    """Similarities of one query to every target; I may be 0."""

    best: Vectors  # (I, N) s_i(t), the best match of each chunk in each target
    whole: Vectors  # (N,) cosines of the document vectors
    n_tokens: NDArray[np.int64]  # (I,) of the query's chunks

    def of_chunks(self, kept: NDArray[np.bool_]) -> Matches:
        """Those of a query that has only the kept (I,) chunks; its document vector stays."""
        return Matches(self.best[kept], self.whole, self.n_tokens[kept])

    def with_target(self, column: int, best: Vectors, whole: float) -> Matches:
        """Those among targets of which one is another: its best matches (I,) and its document cosine."""
        changed = replace(self, best=self.best.copy(), whole=self.whole.copy())
        changed.best[:, column] = best
        changed.whole[column] = whole
        return changed


@dataclass(frozen=True, slots=True)
class Placed:
    """Where one target stands in a ranking."""

    score: float
    rank: float  # from 1; the middle of the places of all targets with the same score


def find_matches(snapshot: Snapshot, query: EncodedDocument, targets: Positions) -> Matches:
    """Multiply the query with every chunk of the targets.

    Args:
        snapshot: of the index.
        query: rounded as `engine.search.as_stored` does.
        targets: (N,) positions of documents; the query itself is not among them.
    """
    best = np.empty((len(query.chunks), len(targets)), np.float32)
    for first in range(0, len(targets), _BLOCK_DOCUMENTS):
        vectors, starts = snapshot.chunk_vectors(targets[first : first + _BLOCK_DOCUMENTS])
        best[:, first : first + _BLOCK_DOCUMENTS] = segment_max(query.chunks @ vectors.T, starts)
    n_tokens = np.array([chunk.n_tokens for chunk in query.chunk_spans], np.int64)
    return Matches(best, snapshot.document_vectors[targets] @ query.document, n_tokens)


def score_all(matches: Matches, scoring: Scoring) -> NDArray[np.float64]:
    """The score of every target; (N,) in [0, 1], all 0 for a query without chunks.

    Thetas and weights are found anew: those of a chunk's crowd hold whatever else
    the query has, and the weights of the chunks that are there sum to 1 - b.
    """
    n = len(matches.whole)
    if not len(matches.best):
        return np.zeros(n)
    lists = top_documents(matches.best, np.arange(n), scoring.crowd + 1)
    limits = thresholds(
        crowd_similarity(lists, scoring.crowd, n),
        document_crowd_similarity(matches.whole, scoring.document_crowd),
        chunk_weights(matches.n_tokens),
        scoring,
    )
    return exact_scores(matches.best, matches.whole, limits, scoring)


def place(scores: NDArray[np.float64], column: int) -> Placed:
    """Where one of the (N,) targets stands."""
    own = scores[column]
    n_above = int(np.count_nonzero(scores > own))
    n_equal = int(np.count_nonzero(scores == own)) - 1
    return Placed(float(own), 1 + n_above + n_equal / 2)
