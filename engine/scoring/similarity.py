"""Best chunks of documents, from vectors. Pure array functions: no files, no models.

Letters in shapes: I query chunks, R targets, J their chunks one after another, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.lists import segment_max
from engine.words.apart import ranges

QUERY_BLOCK = 256  # query chunks multiplied at once
NEAR = 1e-5  # more than float32 products of the same rows ever differ by the shapes of the matrices
_PRODUCTS_AT_ONCE = 8_192  # products that are recomputed in float64 at once


@dataclass(frozen=True, slots=True)
class Matches:
    """For each query chunk its best match inside each target; of equal ones the first in reading order."""

    similarities: Vectors  # (I, R) s_i(t)
    chunks: NDArray[np.int64]  # (I, R) number of the matching chunk in its document, from 0; -1 below the floor

    def of(self, targets: NDArray[np.int64]) -> Matches:
        """The matches in some of the targets, in the order of the given columns."""
        return Matches(self.similarities[:, targets], self.chunks[:, targets])

    def put(self, targets: NDArray[np.int64], found: Matches) -> None:
        """Set the matches in some of the targets."""
        self.similarities[:, targets], self.chunks[:, targets] = found.similarities, found.chunks


def no_matches(n_queries: int, n_targets: int) -> Matches:
    """Matches of query chunks in targets without vectors: similarity 0, no place."""
    return Matches(np.zeros((n_queries, n_targets), np.float32), np.full((n_queries, n_targets), -1, np.int64))


def best_chunks(queries: Vectors, vectors: Vectors, starts: NDArray[np.int64]) -> Vectors:
    """s_i(t) = max_j <q_i, t_j> of every document, (I, R) float32; its last digits depend on the shapes.

    Memory is that of `QUERY_BLOCK` query chunks, whatever their number.

    Args:
        queries: (I, D).
        vectors: (J, D) chunks of the documents, one document after another.
        starts: (R,) first row of each document, rising; no document is empty.
    """
    return np.concatenate([segment_max(queries[block] @ vectors.T, starts) for block in _blocks(queries)])


def best_matches(
    queries: Vectors,
    vectors: Vectors,
    starts: NDArray[np.int64],
    floor: NDArray[np.floating] | Callable[[Vectors], NDArray[np.floating]],
) -> Matches:
    """The best chunk of every document, with its place, to float32 precision whatever the shapes.

    float32 products differ in the last digits by the shapes of the matrices. So products within
    `NEAR` of the best one are recomputed in float64 and rounded to float32. Below the floor a
    similarity has no effect, so the best product is kept as it is, and its place is -1.

    Args:
        floor: (I,) similarity from which on exact similarities are computed; or a function that returns it for some of
            the query chunks, given the products (., R) of their best chunks.
    """
    best, places = [], []
    for block in _blocks(queries):
        similarities: Vectors = queries[block] @ vectors.T
        found = segment_max(similarities, starts)
        at = np.full(found.shape, -1, np.int64)
        least = floor(found) if callable(floor) else floor[block]
        rows, targets = np.nonzero(found >= least[:, None] - NEAR)
        if len(rows):
            near = _near(similarities, found, rows, targets, starts)
            found[rows, targets], at[rows, targets] = _refined(queries[block], vectors, near, starts[targets])
        best.append(found)
        places.append(at)
    return Matches(np.concatenate(best), np.concatenate(places))


@dataclass(frozen=True, slots=True)
class _Near:
    """The chunks that can be the best match in n pairs of a query chunk and a document."""

    pair: NDArray[np.int64]  # (m,) number of the pair, rising
    query: NDArray[np.int64]  # (m,) row of the query chunk
    row: NDArray[np.int64]  # (m,) row of the chunk, rising within a pair


def _near(
    similarities: Vectors,
    best: Vectors,
    rows: NDArray[np.int64],  # (n,) query chunks
    targets: NDArray[np.int64],  # (n,) documents
    starts: NDArray[np.int64],
) -> _Near:
    lengths = np.diff(starts, append=similarities.shape[1])[targets]
    pair, row = np.repeat(np.arange(len(rows)), lengths), ranges(starts[targets], lengths)
    is_near = similarities[rows[pair], row] >= best[rows, targets][pair] - NEAR
    return _Near(pair[is_near], rows[pair[is_near]], row[is_near])


def _refined(
    queries: Vectors, vectors: Vectors, near: _Near, starts: NDArray[np.int64]
) -> tuple[Vectors, NDArray[np.int64]]:
    """The best similarity (n,) of each pair, and the number (n,) of its chunk in the document; `starts` is (n,)."""
    exact = np.empty(len(near.row), np.float32)
    # A few products at a time: if all documents are copies, all products are near the best.
    for first in range(0, len(exact), _PRODUCTS_AT_ONCE):
        some = slice(first, first + _PRODUCTS_AT_ONCE)
        one, other = queries[near.query[some]].astype(np.float64), vectors[near.row[some]].astype(np.float64)
        exact[some] = np.einsum("nd,nd->n", one, other)
    # By pair, then falling similarity, then reading order: the first of each pair is its best.
    order = np.lexsort((near.row, -exact, near.pair))
    pair = near.pair[order]
    best = order[np.concatenate([[True], pair[1:] != pair[:-1]])]
    return exact[best], near.row[best] - starts


def _blocks(queries: Vectors) -> list[slice]:
    return [slice(first, first + QUERY_BLOCK) for first in range(0, len(queries), QUERY_BLOCK)]
