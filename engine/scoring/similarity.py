"""Best chunks of documents, from vectors, and ranked lists of documents, one per query chunk. Pure array functions.

Letters in shapes: I query chunks, N documents, J target chunks, K results, R the length of a list, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.words.apart import ranges


@dataclass(frozen=True, slots=True)
class RankedLists:
    """For each query chunk the documents whose best chunk is nearest, best first.

    Rows with fewer than R documents end in document -1 with similarity -inf.
    """

    documents: NDArray[np.int64]  # (I, R) positions
    similarities: Vectors  # (I, R) float32, falling along R


def segment_max(similarities: Vectors, starts: NDArray[np.int64]) -> Vectors:
    """Best chunk of each document: s_i(t) = max_j <q_i, t_j>.

    Args:
        similarities: (I, J), the chunks of one document in adjacent columns.
        starts: (N,) first column of each document, rising; no document is empty.

    Returns:
        (I, N) float32.
    """
    best: Vectors = np.maximum.reduceat(similarities, starts, axis=1)
    return best


def empty_lists(n_queries: int) -> RankedLists:
    """Lists without a document."""
    return RankedLists(np.empty((n_queries, 0), np.int64), np.empty((n_queries, 0), np.float32))


def best_by_document(positions: NDArray[np.int64], similarities: Vectors, length: int) -> RankedLists:
    """Turn lists of chunks into lists of documents, each with its best chunk.

    Args:
        positions: (I, K) document of each chunk found, -1 where it does not count.
        similarities: (I, K), in any order.
        length: R.
    """
    chunks = _sorted(positions, np.where(positions >= 0, similarities, -np.inf).astype(np.float32))
    first = first_places(chunks.documents, length)
    rows, columns = np.nonzero(first)
    rank = np.cumsum(first, axis=1)[rows, columns] - 1
    documents = np.full((len(positions), length), -1, np.int64)
    best = np.full((len(positions), length), -np.inf, np.float32)
    documents[rows, rank] = chunks.documents[rows, columns]
    best[rows, rank] = chunks.similarities[rows, columns]
    return RankedLists(documents, best)


def first_places(documents: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Where each row names one of its first `length` documents for the first time.

    Args:
        documents: (I, K), best first, -1 where there is no document.
        length: most places marked in a row.

    Returns:
        (I, K) bool.
    """
    # The documents wanted are nearly always in the leading columns.
    width = min(documents.shape[1], 2 * length)
    while True:
        first = _first_in_row(documents[:, :width])
        if width == documents.shape[1] or (np.count_nonzero(first, axis=1) >= length).all():
            break
        width = min(documents.shape[1], 2 * width)
    places = np.zeros(documents.shape, bool)
    places[:, :width] = first & (np.cumsum(first, axis=1) <= length)
    return places


def _first_in_row(documents: NDArray[np.int64]) -> NDArray[np.bool_]:
    row = np.arange(len(documents))[:, None]
    keys = np.where(documents >= 0, row * (documents.max(initial=0) + 1) + documents, -1)
    found, at = np.unique(keys, return_index=True)
    first = np.zeros(documents.shape, bool)
    first.ravel()[at[found >= 0]] = True
    return first


def merge(one: RankedLists, other: RankedLists, length: int) -> RankedLists:
    """Join lists over different documents and keep the best `length`."""
    documents = np.concatenate([one.documents, other.documents], axis=1)
    similarities = np.concatenate([one.similarities, other.similarities], axis=1)
    merged = _sorted(documents, similarities)
    return RankedLists(merged.documents[:, :length], merged.similarities[:, :length])


def with_rows(lists: RankedLists, rows: NDArray[np.bool_], others: RankedLists) -> RankedLists:
    """Lists with some of their rows replaced.

    Args:
        lists: (I, R).
        rows: (I,) True for the n rows to replace.
        others: (n, S) the new rows, S any length.
    """
    width = max(lists.documents.shape[1], others.documents.shape[1])
    documents = np.full((len(rows), width), -1, np.int64)
    similarities = np.full((len(rows), width), -np.inf, np.float32)
    for part, at in ((lists, np.arange(len(rows))), (others, np.flatnonzero(rows))):
        documents[at], similarities[at] = -1, -np.inf
        documents[at, : part.documents.shape[1]] = part.documents
        similarities[at, : part.documents.shape[1]] = part.similarities
    return RankedLists(documents, similarities)


def _sorted(documents: NDArray[np.int64], similarities: Vectors) -> RankedLists:
    order = np.argsort(-similarities, axis=1, kind="stable")
    return RankedLists(np.take_along_axis(documents, order, axis=1), np.take_along_axis(similarities, order, axis=1))


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
