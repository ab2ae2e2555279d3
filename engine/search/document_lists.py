"""From an index that finds chunks to ranked lists of documents. Depends neither on FAISS nor on where vectors are.

An index returns the chunks nearest to a query chunk, and several can be of one document. If they
are of too few documents, the index is searched again, four times as deep. If it compares codes,
exact similarities are computed for the best chunks of a few more documents than requested.

Letters in shapes: I query chunks, K chunks found, R length of a list, D width.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, best_by_document, empty_lists, first_places, merge

SPARE_DOCUMENTS = 40  # documents beyond those requested with exact similarities, for each query chunk
LAST_DEPTH = 8_192  # after this number of chunks for each query chunk, an approximate index is not searched deeper
_DEEPER = 4


class ChunkIndex(Protocol):
    """An index of chunks, set up for the search with one query document."""

    @property
    def first_depth(self) -> int:
        """Chunks requested in the first search, for each query chunk."""

    @property
    def last_depth(self) -> int:
        """Chunks requested for each query chunk from which on no deeper search follows."""

    @property
    def is_coded(self) -> bool:
        """Whether `search` compares codes, so that exact similarities are computed from `vectors`."""

    @property
    def is_bounded(self) -> bool:
        """Whether an id -1 means that a deeper search would find no more chunks."""

    def search(self, queries: Vectors, depth: int) -> tuple[NDArray[np.int64], Vectors]:
        """(I, K) ids of chunks and similarities, best first, K at most `depth`; id -1 where fewer were found."""

    def documents(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document of each id; -1 for the id -1, and for a document that may not be found."""

    def vectors(self, ids: NDArray[np.int64], documents: NDArray[np.int64]) -> Vectors:
        """The vectors (K, D) of single chunks, given their ids and documents."""


def document_lists(index: ChunkIndex, queries: Vectors, length: int, n_documents: int) -> RankedLists:
    """The documents nearest to each query chunk, as far as an index finds them.

    Args:
        index: an index of chunks.
        queries: (I, D).
        length: R.
        n_documents: number of documents that may be found; once all are found, no deeper search follows.

    Returns:
        (I, R); with exact similarities, even if the index compares codes.
    """
    documents = np.full((len(queries), length), -1, np.int64)
    similarities = np.full((len(queries), length), -np.inf, np.float32)
    depth, n_wanted = index.first_depth, min(length, n_documents)
    open_rows = np.arange(len(queries))
    while len(open_rows):
        ids, estimates = index.search(queries[open_rows], depth)
        owners = index.documents(ids)
        first = first_places(owners, length + SPARE_DOCUMENTS)
        is_done = (depth >= index.last_depth) | (np.count_nonzero(first, axis=1) >= n_wanted)
        if index.is_bounded:
            is_done |= ids[:, -1] < 0
        done = open_rows[is_done]
        if index.is_coded:
            found = _multiplied(index, queries[done], ids[is_done], owners[is_done], first[is_done], length)
        else:
            found = best_by_document(owners[is_done], estimates[is_done], length)
        documents[done], similarities[done] = found.documents, found.similarities
        open_rows = open_rows[~is_done]
        depth *= _DEEPER
    return RankedLists(documents, similarities)


def _multiplied(
    index: ChunkIndex,
    queries: Vectors,
    ids: NDArray[np.int64],  # (I, K) chunks by codes, best first
    owners: NDArray[np.int64],  # (I, K) documents of the chunks, -1 where one does not count
    first: NDArray[np.bool_],  # (I, K) where a document occurs for the first time
    length: int,
) -> RankedLists:
    """Lists by exact similarities, computed for a few more documents than requested, since codes are coarse."""
    rows, columns = np.nonzero(first)
    rank = np.cumsum(first, axis=1)[rows, columns] - 1
    found = index.vectors(ids[rows, columns], owners[rows, columns])
    documents = np.full((len(queries), length + SPARE_DOCUMENTS), -1, np.int64)
    similarities = np.full(documents.shape, -np.inf, np.float32)
    documents[rows, rank] = owners[rows, columns]
    similarities[rows, rank] = np.einsum("nd,nd->n", queries[rows], found)
    return merge(RankedLists(documents, similarities), empty_lists(len(queries)), length)
