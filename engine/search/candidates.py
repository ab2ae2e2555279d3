"""Ranked lists of the documents nearest to each query chunk, by FAISS or by a GPU. Scores nothing.

An index returns the chunks nearest to a query chunk, and several can be of one document. If they
are of too few documents, the index is searched again, four times as deep. If it compares codes,
exact similarities are computed for the best chunks of a few more documents than requested.

Letters in shapes: I query chunks, N documents of the index, K chunks found, R length of a list, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions

if TYPE_CHECKING:
    from engine.store.ann import OpenReplica
    from engine.store.postings import Postings

SPARE_DOCUMENTS = 40  # documents beyond those requested with exact similarities, for each query chunk
LAST_DEPTH = 8_192  # after this number of chunks for each query chunk, an approximate index is not searched deeper
_DEEPER = 4
FIRST_DEPTH = 128  # chunks requested from the ANN index for each query chunk
SCAN_BELOW_CHUNKS = 20_000  # if a filter leaves at most this number of chunks, they are scanned exactly
SCAN_BELOW_SHARE = 0.05  # and also if it leaves at most this share of all chunks
SCAN_BELOW_DOCUMENTS = 5_000  # the same for documents in an index without lists, whose term counts are then all read
FILTER_BELOW_SHARE = 0.5  # of vectors that may be found: below, FAISS gets the filter; above, its results are filtered
FULL_QUERY_CHUNKS = 40  # a query of fewer chunks searches more lists for each chunk


@dataclass(frozen=True, slots=True)
class RankedLists:
    """For each query chunk the documents whose best chunk is nearest, best first.

    Rows with fewer than R documents end in document -1 with similarity -inf.
    """

    documents: NDArray[np.int64]  # (I, R) positions
    similarities: Vectors  # (I, R) float32, falling along R


class CandidateLists:
    """Builds lists over the documents of a snapshot that a generation covers."""

    def __init__(
        self, snapshot: IndexSnapshot, generation: OpenGeneration | None = None, replica: OpenReplica | None = None
    ) -> None:
        self.snapshot = snapshot
        self._candidate = generation
        self._replica = replica

    @property
    def generation(self) -> OpenGeneration | None:
        """The generation that is searched."""
        return self._candidate or self.snapshot.generation

    def is_scanned(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether all allowed documents are compared: no index chooses candidates, or a filter leaves few documents."""
        if self._has_lists:
            return self._is_filtered_hard(allowed)
        return self.postings is None or int(np.count_nonzero(allowed)) <= SCAN_BELOW_DOCUMENTS

    @property
    def _has_lists(self) -> bool:
        return self._replica is not None or self._approximate is not None

    @property
    def _approximate(self) -> OpenGeneration | None:
        """The generation if it chooses candidates; one that compares all vectors is not opened, nor FAISS loaded."""
        row = self.snapshot.generation_row
        if self._candidate is None and row is not None and row.is_exact:
            return None
        generation = self.generation
        return None if generation is None or generation.is_exact else generation

    @property
    def postings(self) -> Postings | None:
        """The postings by which words choose candidates."""
        return self.snapshot.word_postings if self._approximate is None else self._approximate.postings

    def is_covered(self) -> NDArray[np.bool_]:
        """(N,) True for the documents that lists or postings can name."""
        if not self._has_lists and self.postings is not None:
            # The few documents with vectors are scored exactly, like documents that were added later.
            return np.isin(self.snapshot.locations.ids, self.postings.ids) & ~self.snapshot.has_vectors
        searched = self._replica or self.generation
        if searched is None:
            return np.zeros(self.snapshot.n_documents, bool)
        return ~self.snapshot.is_fresh(searched.through_chunk)

    def lists(self, queries: Vectors, allowed: NDArray[np.bool_], length: int) -> RankedLists:
        """The documents nearest to each query chunk, as far as the index finds them, with exact similarities.

        `allowed` (N,) are those that may be found, `length` is R.
        """
        if not len(queries):
            return empty_lists(0)
        if self._replica is not None:
            return self.by_replica(self._replica, queries, allowed, length)
        return self.by_generation(queries, allowed, length)

    def by_generation(self, queries: Vectors, allowed: NDArray[np.bool_], length: int) -> RankedLists:
        """The result of `lists`, by the FAISS index on the CPU."""
        generation = self.generation
        if generation is None:
            return empty_lists(len(queries))
        return document_lists(FilteredChunks(self.snapshot, generation, allowed, len(queries)), queries, length)

    def by_replica(
        self, replica: OpenReplica, queries: Vectors, allowed: NDArray[np.bool_], length: int
    ) -> RankedLists:
        """The result of `lists`, by a GPU; by the CPU beyond the limits of the GPU, and where a list is too short."""
        filtered = FilteredChunks(self.snapshot, replica, allowed, len(queries))
        if not filtered.is_within_reach:
            return self.by_generation(queries, allowed, length)
        lists = document_lists(filtered, queries, length)
        is_short = np.count_nonzero(lists.documents >= 0, axis=1) < min(length, filtered.n_documents)
        if not is_short.any():
            return lists
        return with_rows(lists, is_short, self.by_generation(queries[is_short], allowed, length))

    def _is_filtered_hard(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether a filter leaves so few chunks that scanning them is faster than an approximate search."""
        n_left_out = len(allowed) - int(np.count_nonzero(allowed))
        if n_left_out <= 1:
            return False
        n_chunks = int(self.snapshot.locations.n_chunks[allowed].sum())
        return n_chunks <= max(SCAN_BELOW_CHUNKS, SCAN_BELOW_SHARE * self.snapshot.n_chunks)


class FilteredChunks:
    """The chunks of a generation or a replica for one query, searched so that documents left out cost no recall.

    Of n vectors a share s may be found. FAISS searches 1 / s times as many lists, so that it
    compares as many allowed vectors as without a filter. If s is small, FAISS gets the filter;
    else 1 / s times as many chunks are requested, and chunks of other documents are dropped.

    A match that the searched lists miss matters more, the fewer chunks a query has. So a query of I
    chunks searches `FULL_QUERY_CHUNKS` / I times as many lists for each, which is in total no more
    than a query of `FULL_QUERY_CHUNKS` chunks.
    """

    def __init__(
        self,
        snapshot: IndexSnapshot,
        generation: OpenGeneration | OpenReplica,
        allowed: NDArray[np.bool_],
        n_query_chunks: int,
    ) -> None:
        """Choose how many lists are searched, and how many chunks are requested for each query chunk."""
        self._snapshot = snapshot
        self._ann = generation.ann
        self._allowed = allowed & ~snapshot.is_fresh(generation.through_chunk)
        self.n_documents = int(np.count_nonzero(self._allowed))
        share = int(snapshot.locations.n_chunks[self._allowed].sum()) / max(1, self._ann.n_vectors)
        self._chunks: NDArray[np.bool_] | None = None
        nprobe = min(self._ann.n_lists, round(self._ann.nprobe / max(share, 1 / self._ann.n_vectors)))
        wider = round(nprobe * FULL_QUERY_CHUNKS / n_query_chunks)
        self._nprobe = max(nprobe, min(wider, self._ann.n_lists, self._ann.most_nprobe))
        self.first_depth = int(FIRST_DEPTH / max(share, FIRST_DEPTH / LAST_DEPTH))
        if share < FILTER_BELOW_SHARE and self._ann.can_filter:
            self._chunks = snapshot.chunks_of(self._allowed)
            self.first_depth = FIRST_DEPTH
        self.is_within_reach = self.first_depth <= self._ann.most_k and nprobe <= self._ann.most_nprobe
        n_vectors = min(self._ann.n_vectors, self._ann.most_k)
        # A GPU rounds differently from the CPU, so without exact similarities its hits would differ.
        self.is_coded = not (isinstance(generation, OpenGeneration) and generation.is_exact)
        self.last_depth = min(n_vectors, LAST_DEPTH) if self.is_coded else n_vectors  # chunks; no deeper search follows
        self.is_bounded = self._ann.n_lists > 0  # an id -1 means that a deeper search finds no more chunks

    def search(self, queries: Vectors, depth: int) -> tuple[NDArray[np.int64], Vectors]:
        """(I, K) ids of chunks and similarities, best first, K at most `depth`; id -1 where fewer were found."""
        return self._ann.search(queries, depth, allowed=self._chunks, nprobe=self._nprobe)

    def documents(self, ids: NDArray[np.int64]) -> Positions:
        """The document of each id; -1 for the id -1, and for a document that may not be found."""
        positions = self._snapshot.documents_of_chunks(ids)
        return np.where(self._allowed[positions], positions, -1)

    def vectors(self, ids: NDArray[np.int64], documents: Positions) -> Vectors:
        """The vectors (K, D) of single chunks, given their ids and documents."""
        return self._snapshot.chunks_by_id(ids, documents)


def document_lists(index: FilteredChunks, queries: Vectors, length: int) -> RankedLists:
    """The documents nearest to each query chunk, as far as an index finds them; R is `length`.

    Similarities are exact, even if the index compares codes.
    """
    if not index.n_documents:
        return empty_lists(len(queries))
    documents = np.full((len(queries), length), -1, np.int64)
    similarities = np.full((len(queries), length), -np.inf, np.float32)
    depth, n_wanted = index.first_depth, min(length, index.n_documents)
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
            lists = _multiplied(index, queries[done], ids[is_done], owners[is_done], first[is_done], length)
        else:
            lists = best_by_document(owners[is_done], estimates[is_done], length)
        documents[done], similarities[done] = lists.documents, lists.similarities
        open_rows = open_rows[~is_done]
        depth *= _DEEPER
    return RankedLists(documents, similarities)


def _multiplied(
    index: FilteredChunks,
    queries: Vectors,
    ids: NDArray[np.int64],  # (I, K) chunks by codes, best first
    owners: NDArray[np.int64],  # (I, K) documents of the chunks, -1 where one does not count
    first: NDArray[np.bool_],  # (I, K) where a document occurs for the first time
    length: int,
) -> RankedLists:
    """Lists by exact similarities, computed for a few more documents than requested, since codes are coarse."""
    rows, columns = np.nonzero(first)
    vectors = index.vectors(ids[rows, columns], owners[rows, columns])
    similarities = np.full(owners.shape, -np.inf, np.float32)
    similarities[rows, columns] = np.einsum("nd,nd->n", queries[rows], vectors)
    return best_by_document(np.where(first, owners, -1), similarities, length)


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
    distinct, places = np.unique(keys, return_index=True)
    first = np.zeros(documents.shape, bool)
    first.ravel()[places[distinct >= 0]] = True
    return first


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
