"""How an index is asked for the neighbours of a chunk and for the targets of a document, as our search goes about it.

Letters in shapes: I query chunks, K neighbours, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.vectors.candidate import VectorIndex
from benchmarks.vectors.collection import Collection
from benchmarks.vectors.truth import LIST_LENGTH, SCORING, limits_of, rank_by_lists
from engine.encoders.encoder import Vectors
from engine.scoring.evidence import exact_scores
from engine.scoring.lists import RankedLists, best_by_document, first_places, segment_max
from engine.search import FIRST_DEPTH, LAST_DEPTH, MIN_RESCORED, SPARE_DOCUMENTS
from engine.store.ann import Ids

_BLOCK_QUERIES = 64  # chunks whose found rows are in memory at once: 24 MiB at a depth of 256


@dataclass(frozen=True)
class Answers:
    """What an index finds with one setting."""

    chunks: Ids  # (I, K) rows found for each query chunk of all documents; -1 where there were fewer
    documents: list[list[int]] | None  # of each query document the targets, best first; None where none was asked
    deepest: int  # chunks that a document asked for, for each of its chunks, at most; 0 where none was asked


def answer(index: VectorIndex, collection: Collection, k: int) -> Answers:
    """Ask with every chunk, and with every document where `asks_documents`; nothing is timed."""
    blocks = [
        nearest(index, collection, collection.queries[first : first + _BLOCK_QUERIES], k)[0]
        for first in range(0, len(collection.queries), _BLOCK_QUERIES)
    ]
    k = min(k, len(collection.rows))
    chunks = np.concatenate([np.pad(rows, ((0, 0), (0, k - rows.shape[1])), constant_values=-1) for rows in blocks])
    if not asks_documents(index):
        return Answers(chunks, None, 0)
    watched = _Watched(index)
    documents = [ranked(watched, collection, queries, k).tolist() for queries in collection.query_documents()]
    return Answers(chunks, documents, watched.deepest)


def asks_documents(index: VectorIndex) -> bool:
    """Whether an index is asked with documents as it is set.

    A document asks for `FIRST_DEPTH` neighbours of each chunk. A graph that is set to a narrower search is
    searched as widely as that, so that it would be measured with another setting than its own.
    """
    return index.search_width is None or index.search_width >= FIRST_DEPTH


def nearest(index: VectorIndex, collection: Collection, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
    """Neighbours of query chunks; where the index is rescored, the best of as many as our search asks at first.

    Returns:
        (I, K) rows and similarities, best first; row -1 where there were fewer.
    """
    if not index.is_rescored:
        return index.search(queries, k)
    rows, _ = index.search(queries, max(k, FIRST_DEPTH))
    found = similarities(collection, queries, rows)
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(found, order, axis=1)


def ranked(index: VectorIndex, collection: Collection, queries: Vectors, k: int) -> NDArray[np.int64]:
    """The best `k` targets of a query document, best first, as `engine.search` goes about it.

    Lists of documents are made of the chunks that are found. Where the index is rescored, the
    best targets by these lists are scored again by all of their chunks.
    """
    lists = _document_lists(index, collection, queries)
    if not index.is_rescored:
        return rank_by_lists(lists, collection.n_documents, k)
    documents = rank_by_lists(lists, collection.n_documents, max(MIN_RESCORED, 2 * k))
    if not len(documents):
        return documents
    rows, starts = collection.chunks_of(documents)
    best = segment_max(queries @ rows.T, starts)  # (I, documents)
    limits = limits_of(lists, collection.n_documents)
    scores = exact_scores(best, np.zeros(len(documents), np.float32), limits, SCORING)
    return documents[np.lexsort((documents, -scores))][:k]


def similarities(collection: Collection, queries: Vectors, rows: Ids) -> Vectors:
    """(I, K) exact cosines with the rows found, which are read as they are stored; -inf where there is none."""
    at, column = np.nonzero(rows >= 0)
    exact = np.full(rows.shape, -np.inf, np.float32)
    exact[at, column] = np.einsum("nd,nd->n", queries[at], collection.rows[rows[at, column]].astype(np.float32))
    return exact


def _document_lists(index: VectorIndex, collection: Collection, queries: Vectors) -> RankedLists:
    """Lists of documents, deeper for the query chunks whose neighbours are of too few documents."""
    wanted = min(LIST_LENGTH, collection.n_documents)
    documents = np.full((len(queries), LIST_LENGTH), -1, np.int64)
    best = np.full((len(queries), LIST_LENGTH), -np.inf, np.float32)
    depth, n_rows = FIRST_DEPTH, len(collection.rows)
    unfilled = np.arange(len(queries))
    while len(unfilled):
        found = _document_lists_of(index, collection, queries[unfilled], depth)
        documents[unfilled], best[unfilled] = found.documents, found.similarities
        if depth >= min(n_rows, LAST_DEPTH):
            break
        unfilled = unfilled[(found.documents >= 0).sum(axis=1) < wanted]
        depth *= 4
    return RankedLists(documents, best)


def _document_lists_of(index: VectorIndex, collection: Collection, queries: Vectors, depth: int) -> RankedLists:
    """Lists from so many chunks each; where the index is rescored, each document's first one is multiplied exactly."""
    rows, found = index.search(queries, depth)
    documents = np.where(rows >= 0, collection.owners[rows], -1)
    if index.is_rescored:
        documents = np.where(first_places(documents, LIST_LENGTH + SPARE_DOCUMENTS), documents, -1)
        found = similarities(collection, queries, np.where(documents >= 0, rows, -1))
    return best_by_document(documents, found, LIST_LENGTH)


class _Watched:
    """An index that is built, and how many chunks it was asked for at most."""

    def __init__(self, index: VectorIndex) -> None:
        self.deepest = 0
        self.is_rescored = index.is_rescored
        self.search_width = index.search_width
        self._index = index
        self.build, self.set, self.write = index.build, index.set, index.write

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        self.deepest = max(self.deepest, k)
        return self._index.search(queries, k)
