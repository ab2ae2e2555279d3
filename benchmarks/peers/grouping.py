"""From hits of chunks to a ranking of documents, as a user of a chunk index does it. Pure functions.

Letters in shapes: I chunks of the query, C chunks of N documents, D width.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Ranking
from engine.encoders.encoder import Vectors

DEPTH = 256  # chunks of other documents asked for each chunk of the query at first, as many as our own search asks
_DEEPER = 4  # times, as our own search
_BLOCK_CHUNKS = 8192  # multiplied at once


def deepened(ask: Callable[[int], Sequence[Ranking]], without: str, k: int, *, n_own: int, n_chunks: int) -> Ranking:
    """Rank documents by the best pair of a chunk of theirs and one of the query's, asking until there are enough.

    Args:
        ask: gives, for each chunk of the query, so many nearest chunks of the index, as `grouped` takes them.
        without: a document to leave out.
        k: targets wanted.
        n_own: chunks of that document in the index, which stand in the answers too; 0 where the index leaves them out.
        n_chunks: of the index.

    Returns:
        At most `k`, best first.
    """
    depth = DEPTH
    while True:
        ranking = grouped(ask(min(depth + n_own, n_chunks)), without, k)
        if len(ranking) >= k or depth + n_own >= n_chunks:
            return ranking
        depth *= _DEEPER


def grouped(lists: Sequence[Ranking], without: str, k: int) -> Ranking:
    """Rank documents by their best chunk that was found.

    Args:
        lists: for each chunk of the query the documents of the chunks found, with their
            similarities in [-1, 1]; a document may stand in a list several times.
        without: a document to leave out.
        k: targets wanted.

    Returns:
        At most `k`, best first, equal ones as they first came.
    """
    scores: dict[str, float] = {}
    for found in lists:
        for doc_id, similarity in found:
            if doc_id != without:
                scores[doc_id] = max(similarity, scores.get(doc_id, similarity))
    return heapq.nlargest(k, scores.items(), key=lambda item: item[1])


def summed(queries: Vectors, chunks: Vectors, starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Score every document by the sum, over the query's chunks, of the best match in it.

    MaxSim of ColBERT (Khattab & Zaharia 2020, arXiv:2004.12832, eq. 3) over chunks
    instead of tokens, s(q, t) = sum_i max_j <q_i, t_j>, over all chunks of the index.

    Args:
        queries: (I, D) unit rows.
        chunks: (C, D) unit rows, those of a document beside each other.
        starts: (N,) first row of each document, rising; none is empty.

    Returns:
        (N,) in [-I, I].
    """
    scores = np.empty(len(starts))
    ends = np.append(starts[1:], len(chunks))
    block = (ends - 1) // _BLOCK_CHUNKS
    for own in np.split(np.arange(len(starts)), np.flatnonzero(np.diff(block)) + 1):
        first, stop = starts[own[0]], ends[own[-1]]
        best = np.maximum.reduceat(queries @ chunks[first:stop].T, starts[own] - first, axis=1)  # (I, documents)
        scores[own] = best.sum(axis=0, dtype=np.float64)
    return scores
