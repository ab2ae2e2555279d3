"""Ranked lists of documents, one per query chunk. Pure array functions: no files, no models.

Letters in shapes: I query chunks, N documents, J target chunks, K results, R the
length of a list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors


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
