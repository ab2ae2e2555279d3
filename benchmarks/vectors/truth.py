"""The exact answer to every query, by multiplying with all rows; nothing is taken from what is measured.

Documents are ranked by lists alone, as vectors without a reference can be: for query chunk i, s_i(t) is its
best match inside document t, theta_i the s_i of its (M+1)-th best document, and

    score(q, t) = sum_i max(0, s_i(t) - theta_i)^2

Letters in shapes: C chunks of N documents, I query chunks of Q query documents, D width, K neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.vectors.collection import Collection
from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, merge, segment_max, top_documents

EXCEEDING = 20  # documents of a list above its threshold
LIST_LENGTH = EXCEEDING + 1
TIE = 1e-6  # similarities that differ by less are equal: their sums are added up in different orders
_BLOCK_CHUNKS = 8192  # and
_BLOCK_QUERIES = 1024  # whose table of similarities is in memory: 32 MiB


@dataclass(frozen=True)
class Truth:
    """What an exact search finds."""

    least: Vectors  # (I,) similarity of the K-th neighbour of each query chunk
    documents: list[list[int]]  # of each query document the best targets, best first


def exact(collection: Collection, k: int) -> Truth:
    """Scan the collection, a block of targets against a block of query chunks at a time.

    Args:
        collection: rows and queries.
        k: K, and the targets of a query document; fewer where there are fewer.
    """
    k, n_queries = min(k, len(collection.rows)), len(collection.queries)
    nearest = np.full((n_queries, k), -np.inf, np.float32)
    documents = np.full((n_queries, LIST_LENGTH), -1, np.int64)
    similarities = np.full((n_queries, LIST_LENGTH), -np.inf, np.float32)
    for positions in _document_blocks(collection):
        rows, starts = collection.chunks_of(positions)
        for first in range(0, n_queries, _BLOCK_QUERIES):
            asked = slice(first, first + _BLOCK_QUERIES)
            table = collection.queries[asked] @ rows.T  # (I of the block, chunks of the block)
            nearest[asked] = _largest(np.concatenate([nearest[asked], _largest(table, k)], axis=1), k)
            so_far = RankedLists(documents[asked], similarities[asked])
            found = top_documents(segment_max(table, starts), positions, LIST_LENGTH)
            merged = merge(so_far, found, LIST_LENGTH)
            documents[asked], similarities[asked] = merged.documents, merged.similarities
    return Truth(nearest.min(axis=1), _ranked(collection, RankedLists(documents, similarities), k))


def _document_blocks(collection: Collection) -> list[NDArray[np.int64]]:
    """Runs of documents of about `_BLOCK_CHUNKS` chunks; a longer document is a run of its own."""
    block = (collection.starts[1:] - 1) // _BLOCK_CHUNKS
    return np.split(np.arange(collection.n_documents), np.flatnonzero(np.diff(block)) + 1)


def _largest(values: Vectors, k: int) -> Vectors:
    """(I, K) the largest of each row, in any order; all where there are no more."""
    n = values.shape[1]
    return values if n <= k else np.partition(values, n - k, axis=1)[:, n - k :]


def _ranked(collection: Collection, lists: RankedLists, k: int) -> list[list[int]]:
    """The best targets of each query document, from the lists of all query chunks."""
    stops = [*collection.query_starts[1:].tolist(), len(collection.queries)]
    ranked = []
    for start, stop in zip(collection.query_starts.tolist(), stops, strict=True):
        own = RankedLists(lists.documents[start:stop], lists.similarities[start:stop])
        ranked.append(rank_by_lists(own, collection.n_documents, k).tolist())
    return ranked


def rank_by_lists(lists: RankedLists, n_documents: int, k: int) -> NDArray[np.int64]:
    """Rank documents by what their matches exceed the thresholds of lists by.

    Args:
        lists: of the chunks of one query document.
        n_documents: N.
        k: documents at most.

    Returns:
        (n,) numbers of documents with a score above 0, best first, equal ones by number.
    """
    shares = squared_excess(lists.similarities, list_thresholds(lists, n_documents))
    counts = (lists.documents >= 0) & (shares > 0)
    documents, at = np.unique(lists.documents[counts], return_inverse=True)
    scores = np.bincount(at, shares[counts], minlength=len(documents))
    return documents[np.lexsort((documents, -scores))][:k]


def list_thresholds(lists: RankedLists, n_documents: int) -> Vectors:
    """theta (I,) in [0, 1]: similarity of the last document of each list, 0 where there are M documents or fewer."""
    if n_documents <= EXCEEDING:
        return np.zeros(len(lists.similarities), np.float32)
    found = np.where(np.isfinite(lists.similarities), lists.similarities, np.inf)[:, :LIST_LENGTH].min(axis=1)
    return np.clip(np.where(np.isfinite(found), found, 0), 0, 1).astype(np.float32)


def squared_excess(similarities: Vectors, theta: Vectors) -> NDArray[np.float64]:
    """max(0, s_i(t) - theta_i)^2 (I, N); what differs by `TIE` at most exceeds nothing."""
    above = np.minimum(similarities, 1).astype(np.float64) - theta[:, None]
    return np.asarray(np.where(above > TIE, above, 0) ** 2)
