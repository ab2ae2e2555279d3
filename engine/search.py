"""Searching one snapshot: lists -> thresholds -> exact scores -> hits with breakdown. Encodes nothing.

Letters in shapes: I query chunks, N documents of the index, R those rescored, J
their chunks, D width.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.document import Document
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import QueryError
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import break_down
from engine.scoring.evidence import (
    Scoring,
    Thresholds,
    chunk_weights,
    crowd_similarity,
    document_crowd_similarity,
    exact_scores,
    list_scores,
    thresholds,
)
from engine.scoring.lists import (
    RankedLists,
    best_by_document,
    empty_lists,
    first_places,
    merge,
    segment_max,
    top_documents,
)
from engine.store.snapshot import OpenGeneration, Positions, Snapshot

SPARE_DOCUMENTS = 40  # in the list of a query chunk, beyond the crowd, before exact similarities are read
MIN_RESCORED = 64  # documents rescored exactly, at least; and twice the page
QUERY_BLOCK = 256  # query chunks multiplied at once
SCAN_BLOCK_CHUNKS = 32_768  # target chunks gathered at once in an exact scan
FIRST_DEPTH = 256  # chunks asked of the ANN index for each query chunk
LAST_DEPTH = 8_192  # and at most
SCAN_BELOW_CHUNKS = 20_000  # a filter that leaves fewer is scanned exactly
SCAN_BELOW_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Query:
    """A document to ask with, and its vectors as float32 of half precision, as targets have them."""

    document: Document
    vectors: EncodedDocument


def as_stored(encoded: EncodedDocument) -> EncodedDocument:
    """Round vectors as a shard would, so that a file and its indexed copy ask the same question."""

    def rounded(rows: Vectors) -> Vectors:
        return rows.astype(np.float16).astype(np.float32)

    return EncodedDocument(
        rounded(encoded.document),
        rounded(encoded.sections),
        rounded(encoded.chunks),
        encoded.chunk_spans,
        encoded.coverage,
    )


class Searcher:
    """Answers queries over one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        scoring: Scoring | None = None,
        generation: OpenGeneration | None = None,
    ) -> None:
        """Search a snapshot under the given constants, by its own generation or one not published yet."""
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        self._candidate = generation

    @property
    def _generation(self) -> OpenGeneration | None:
        return self._candidate or self.snapshot.generation

    def search(
        self,
        query: Query,
        *,
        k: int = 10,
        offset: int = 0,
        where: str | None = None,
        without: str | None = None,
        exact: bool = False,
    ) -> Result:
        """Rank the documents of the index against a query.

        Args:
            query: the document to ask with.
            k: hits wanted.
            offset: hits to leave out first, for pages.
            where: metadata filter, see `engine.store.where`.
            without: doc_id of a document to leave out.
            exact: scan all vectors, whatever index there is.

        Raises:
            QueryError: k or offset out of range, or the filter does not parse.
        """
        if k < 1 or offset < 0:
            raise QueryError(f"k is {k} and offset {offset}; k must be at least 1 and offset at least 0")
        started = time.perf_counter()
        allowed = self._allowed(where, without)
        lists, is_exact = self._lists(query.vectors.chunks, allowed, exact=exact)
        whole = self._document_similarities(query.vectors.document, allowed)
        limits = self._thresholds(query, lists, whole, int(allowed.sum()))
        candidates, _ = list_scores(lists, whole, limits, self.scoring)
        n_found = len(candidates)
        rescored = candidates[: max(MIN_RESCORED, 2 * (offset + k))]
        ordered, scores = self._rescore(query.vectors.chunks, rescored, whole, limits)
        page = slice(offset, offset + k)
        hits = self._hits(query, ordered[page], scores[page], offset, whole, limits)
        return Result(
            query=query.document,
            query_coverage=query.vectors.coverage,
            hits=hits,
            status=Status.CERTIFIED if is_exact else Status.ESTIMATED,
            n_found=n_found,
            n_searched=int(allowed.sum()),
            seconds=time.perf_counter() - started,
        )

    def rank(self, query: Query, *, k: int, without: str | None = None) -> tuple[Positions, NDArray[np.float64]]:
        """Positions and scores of the best documents by the lists alone, without rescoring or breakdown.

        Where lists are exact it is the ranking of `search`, with its scores; of an
        approximate generation both are estimates.

        Args:
            query: the document to ask with.
            k: how many at most.
            without: doc_id of a document to leave out.

        Returns:
            Two of (N,), N at most k: rows of the snapshot, and scores above 0, best first, equal
            ones by position.

        Raises:
            QueryError: k is below 1.
        """
        if k < 1:
            raise QueryError(f"k is {k}; it must be at least 1")
        allowed = self._allowed(None, without)
        lists, _ = self._lists(query.vectors.chunks, allowed, exact=False)
        whole = self._document_similarities(query.vectors.document, allowed)
        limits = self._thresholds(query, lists, whole, int(allowed.sum()))
        positions, scores = list_scores(lists, whole, limits, self.scoring)
        return positions[:k], scores[:k]

    def _allowed(self, where: str | None, without: str | None) -> NDArray[np.bool_]:
        allowed = np.ones(self.snapshot.n_documents, bool) if where is None else self.snapshot.matching(where)
        position = self.snapshot.position(without) if without is not None else None
        if position is not None:
            allowed[position] = False
        return allowed

    def _document_similarities(self, vector: Vectors, allowed: NDArray[np.bool_]) -> Vectors:
        similarities = self.snapshot.document_vectors @ vector
        return np.where(allowed, similarities, -np.inf).astype(np.float32)

    def _thresholds(self, query: Query, lists: RankedLists, whole: Vectors, n_allowed: int) -> Thresholds:
        theta = crowd_similarity(lists, self.scoring.crowd, n_allowed)
        theta_document = document_crowd_similarity(whole[np.isfinite(whole)], self.scoring.document_crowd)
        n_tokens = np.array([chunk.n_tokens for chunk in query.vectors.chunk_spans])
        return thresholds(theta, theta_document, chunk_weights(n_tokens), self.scoring)

    def _lists(self, queries: Vectors, allowed: NDArray[np.bool_], *, exact: bool) -> tuple[RankedLists, bool]:
        """Lists of M + 1 documents a query chunk, and whether they are exact."""
        length = self.scoring.crowd + 1
        if exact or self._is_filtered_hard(allowed) or (generation := self._generation) is None:
            return self._scan(queries, np.flatnonzero(allowed), length), True
        fresh = self.snapshot.is_fresh(generation.through_chunk)
        scanned = self._scan(queries, np.flatnonzero(allowed & fresh), length)
        covered = self._ann(generation, queries, allowed & ~fresh, length)
        return merge(covered, scanned, length), generation.is_exact

    def _is_filtered_hard(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether so little may be found that scanning it is quicker than searching past the rest."""
        n_left_out = len(allowed) - int(allowed.sum())
        n_chunks = int(self.snapshot.roster.n_chunks[allowed].sum())
        return n_left_out > 1 and n_chunks <= max(SCAN_BELOW_CHUNKS, SCAN_BELOW_SHARE * self.snapshot.n_chunks)

    def _scan(self, queries: Vectors, positions: Positions, length: int) -> RankedLists:
        """Exact lists by multiplying with every chunk of the given documents."""
        lists = empty_lists(len(queries))
        for block in self._blocks(positions):
            vectors, starts = self.snapshot.chunk_vectors(block)
            best = _best_chunks(queries, vectors, starts)
            lists = merge(lists, top_documents(best, block, length), length)
        return lists

    def _blocks(self, positions: Positions) -> list[Positions]:
        """Cut documents into runs of about `SCAN_BLOCK_CHUNKS` chunks."""
        ends = np.cumsum(self.snapshot.roster.n_chunks[positions])
        block = (ends - 1) // SCAN_BLOCK_CHUNKS
        return np.split(positions, np.flatnonzero(np.diff(block)) + 1) if len(positions) else []

    def _ann(
        self, generation: OpenGeneration, queries: Vectors, allowed: NDArray[np.bool_], length: int
    ) -> RankedLists:
        """Lists from FAISS, deeper for the query chunks whose neighbours are of too few documents."""
        n_wanted = min(length, int(allowed.sum()))
        documents = np.full((len(queries), length), -1, np.int64)
        similarities = np.full((len(queries), length), -np.inf, np.float32)
        n_vectors = generation.ann.n_vectors
        share = self.snapshot.roster.n_chunks[allowed].sum() / max(1, n_vectors)
        depth = int(FIRST_DEPTH / max(share, FIRST_DEPTH / LAST_DEPTH))
        open_rows = np.arange(len(queries) if n_wanted else 0)
        while len(open_rows):
            found = self._ann_once(generation, queries[open_rows], allowed, depth, length)
            documents[open_rows], similarities[open_rows] = found.documents, found.similarities
            if depth >= n_vectors or (depth >= LAST_DEPTH and not generation.is_exact):
                break
            open_rows = open_rows[(found.documents >= 0).sum(axis=1) < n_wanted]
            depth *= 4
        return RankedLists(documents, similarities)

    def _ann_once(
        self, generation: OpenGeneration, queries: Vectors, allowed: NDArray[np.bool_], depth: int, length: int
    ) -> RankedLists:
        ids, similarities = generation.ann.search(queries, depth)
        positions = self.snapshot.documents_of_chunks(ids)
        positions = np.where(allowed[positions], positions, -1)
        if not generation.is_exact:
            # Codes are coarse: the best chunk of a few documents more than wanted is multiplied exactly.
            positions = np.where(first_places(positions, length + SPARE_DOCUMENTS), positions, -1)
            rows, columns = np.nonzero(positions >= 0)
            found = self.snapshot.chunks_by_id(ids[rows, columns], positions[rows, columns])
            similarities[rows, columns] = np.einsum("nd,nd->n", queries[rows], found)
        return best_by_document(positions, similarities, length)

    def _rescore(
        self, queries: Vectors, positions: Positions, whole: Vectors, limits: Thresholds
    ) -> tuple[Positions, NDArray[np.float64]]:
        """Documents and their exact scores, from the stored vectors: best first, equal ones by position."""
        if not len(positions):
            return positions, np.zeros(0)
        vectors, starts = self.snapshot.chunk_vectors(positions)
        best = _best_chunks(queries, vectors, starts)
        scores = exact_scores(best, whole[positions], limits, self.scoring)
        order = np.lexsort((positions, -scores))
        return positions[order], scores[order]

    def _hits(
        self,
        query: Query,
        positions: Positions,
        scores: NDArray[np.float64],
        offset: int,
        whole: Vectors,
        limits: Thresholds,
    ) -> tuple[Hit, ...]:
        vectors, starts = self.snapshot.chunk_vectors(positions)
        similarities = np.split(query.vectors.chunks @ vectors.T, starts[1:], axis=1)
        hits = []
        for number, (document, coverage) in enumerate(self.snapshot.documents(positions)):
            position = int(positions[number])
            breakdown = break_down(
                query.vectors.chunk_spans,
                self.snapshot.spans(position),
                similarities[number],
                float(whole[position]),
                limits,
                self.scoring,
            )
            hits.append(Hit(offset + number + 1, float(scores[number]), document, breakdown, coverage))
        return tuple(hits)


def _best_chunks(queries: Vectors, vectors: Vectors, starts: NDArray[np.int64]) -> Vectors:
    """s_i(t) (I, R) of documents whose chunks (J, D) lie one after another."""
    blocks = [
        segment_max(queries[first : first + QUERY_BLOCK] @ vectors.T, starts)
        for first in range(0, len(queries), QUERY_BLOCK)
    ]
    return np.concatenate(blocks)
