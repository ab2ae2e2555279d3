"""How an index is searched for the neighbours of a chunk and for the targets of a document.

Letters in shapes: I query chunks, K neighbours, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.vectors.candidate import VectorIndex
from benchmarks.vectors.collection import Collection
from benchmarks.vectors.truth import LIST_LENGTH, list_thresholds, rank_by_lists, squared_excess
from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, merge
from engine.scoring.similarity import best_chunks
from engine.search.candidates import FIRST_DEPTH
from engine.search.document_lists import LAST_DEPTH, document_lists
from engine.store.ann import Ids

RESCORED = 64  # documents rescored exactly, at least; and twice as many as are wanted
_BLOCK_QUERIES = 64  # chunks whose found rows are in memory at once: 12 MiB at a depth of 128


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
    asked = Asked(index, collection)
    documents = [ranked(asked, queries, k).tolist() for queries in collection.query_documents()]
    return Answers(chunks, documents, asked.deepest)


def asks_documents(index: VectorIndex) -> bool:
    """Whether an index is asked with documents as it is set.

    A document asks for `FIRST_DEPTH` neighbours of each chunk. A graph that is set to a narrower search is
    searched as widely as that, so that it would be measured with another setting than its own.
    """
    return index.search_width is None or index.search_width >= FIRST_DEPTH


def nearest(index: VectorIndex, collection: Collection, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
    """CandidateLists of query chunks; where the index is rescored, the best of as many as our search asks at first.

    Returns:
        (I, K) rows and similarities, best first; row -1 where there were fewer.
    """
    if not index.is_rescored:
        return index.search(queries, k)
    rows, _ = index.search(queries, max(k, FIRST_DEPTH))
    found = similarities(collection, queries, rows)
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(found, order, axis=1)


class Asked:
    """An index over a collection, as the protocol `ChunkIndex` demands; chunks are named by their rows."""

    first_depth = FIRST_DEPTH

    def __init__(self, index: VectorIndex, collection: Collection) -> None:
        """Ask an index that is built over a collection."""
        self.collection = collection
        self.deepest = 0  # chunks that were asked for at most, so far
        self.last_depth = min(len(collection.rows), LAST_DEPTH)
        self.is_coded = index.is_rescored
        self.is_bounded = index.search_width is None  # a graph finds more where it is asked for more
        self._index = index

    def search(self, queries: Vectors, depth: int) -> tuple[Ids, Vectors]:
        """As `ChunkIndex.search`."""
        self.deepest = max(self.deepest, depth)
        return self._index.search(queries, depth)

    def documents(self, ids: Ids) -> NDArray[np.int64]:
        """As `ChunkIndex.documents`; all may be found."""
        return np.where(ids >= 0, self.collection.owners[ids], -1)

    def vectors(self, ids: Ids, documents: NDArray[np.int64]) -> Vectors:
        """As `ChunkIndex.vectors`."""
        return self.collection.rows[ids].astype(np.float32)


def ranked(asked: Asked, queries: Vectors, k: int) -> NDArray[np.int64]:
    """The best `k` targets of a query document, best first.

    Lists of documents are made of the chunks that are found, by the engine itself. Where the index
    is rescored, the best targets by these lists are scored again by all of their chunks, against
    thresholds of lists in which they have their exact similarities.
    """
    collection = asked.collection
    lists = document_lists(asked, queries, LIST_LENGTH, collection.n_documents)
    if not asked.is_coded:
        return rank_by_lists(lists, collection.n_documents, k)
    documents = rank_by_lists(lists, collection.n_documents, max(RESCORED, 2 * k))
    if not len(documents):
        return documents
    best = best_chunks(queries, *collection.chunks_of(documents))  # (I, documents)
    is_known = np.isin(lists.documents, documents)
    others = RankedLists(lists.documents, np.where(is_known, -np.inf, lists.similarities).astype(np.float32))
    known = RankedLists(np.broadcast_to(documents, best.shape), best)
    theta = list_thresholds(merge(others, known, LIST_LENGTH), collection.n_documents)
    scores = squared_excess(best, theta).sum(axis=0)
    return documents[np.lexsort((documents, -scores))][:k]


def similarities(collection: Collection, queries: Vectors, rows: Ids) -> Vectors:
    """(I, K) exact cosines with the rows found, which are read as they are stored; -inf where there is none."""
    at, column = np.nonzero(rows >= 0)
    exact = np.full(rows.shape, -np.inf, np.float32)
    exact[at, column] = np.einsum("nd,nd->n", queries[at], collection.rows[rows[at, column]].astype(np.float32))
    return exact
