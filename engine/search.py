"""Searching one snapshot: lists -> thresholds -> exact scores -> hits with breakdown. Encodes nothing.

Where lists are approximate, a document that one of them misses lowers its threshold. Most
of those documents are near other chunks of the query and so rescored: the thresholds are
taken again from lists with their exact similarities, before scores are.

Letters in shapes: I query chunks, N documents of the index, R those rescored, J
their chunks, D width.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.acceleration import Acceleration
from engine.document import Document
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.errors import QueryError
from engine.long_query import pool_long
from engine.neighbours import Neighbours
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import break_down
from engine.scoring.evidence import (
    Scoring,
    Thresholds,
    chunk_weights,
    crowd_similarity,
    exact_scores,
    list_scores,
    thresholds,
)
from engine.scoring.lists import RankedLists, corrected, without_document
from engine.scoring.similarity import Matches, best_matches, join, products
from engine.store.snapshot import OpenGeneration, Positions, Snapshot

MIN_RESCORED = 64  # documents rescored exactly, at least; and twice the page
PASS_CHUNKS = 4_096  # query chunks whose lists are built in one pass over the index


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


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What one query meets in the index, before anything is rescored."""

    lists: RankedLists  # of chunks
    whole: RankedLists  # one list, of document vectors
    limits: Thresholds
    n_allowed: int  # documents that may be found
    is_exact: bool


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Documents rescored from their stored vectors, best first, equal ones by position; with what hits need."""

    positions: Positions  # (R,)
    scores: NDArray[np.float64]  # (R,)
    matches: Matches  # (I, R)
    whole: Vectors  # (R,) cosines of the document vectors
    limits: Thresholds
    n_found: int  # documents with a score above 0, the others included


class Searcher:
    """Answers queries over one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        scoring: Scoring | None = None,
        generation: OpenGeneration | None = None,
        scan_chunks: int | None = None,
        acceleration: Acceleration | None = None,
    ) -> None:
        """Search a snapshot.

        Args:
            snapshot: stays open meanwhile.
            scoring: the constants.
            generation: one that is not published yet, in place of the snapshot's own.
            scan_chunks: target chunks in memory at one time, see `engine.neighbours`.
            acceleration: of a GPU; none by default.
        """
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        replica = None if acceleration is None else acceleration.replica
        self._multiply = products if acceleration is None else acceleration.multiply
        self._neighbours = Neighbours(snapshot, generation, scan_chunks, replica=replica, multiply=self._multiply)

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

        A query of very many chunks is asked in fewer, pooled ones, see `engine.long_query`;
        the coverage of the result says so.

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
        vectors = pool_long(query.vectors)
        allowed = self._allowed(where, without)
        found = self._evidence(vectors, allowed, exact=exact)
        ranking = self._rescored(vectors, found, max(MIN_RESCORED, 2 * (offset + k)))
        return Result(
            query=query.document,
            query_coverage=vectors.coverage,
            hits=self._hits(vectors, ranking, slice(offset, offset + k)),
            status=Status.CERTIFIED if found.is_exact else Status.ESTIMATED,
            n_found=ranking.n_found,
            n_searched=found.n_allowed,
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
        found = self._evidence(pool_long(query.vectors), self._allowed(None, without), exact=False)
        positions, scores = list_scores(found.lists, found.whole, found.limits, self.scoring)
        return positions[:k], scores[:k]

    def top_positions(self, query: Query, *, k: int, without: str) -> Positions:
        """Rows of the snapshot whose documents `search` would show, best first; no text is read.

        Args:
            query: the document to ask with.
            k: how many at most.
            without: doc_id of a document to leave out.
        """
        vectors = pool_long(query.vectors)
        found = self._evidence(vectors, self._allowed(None, without), exact=False)
        return self._rescored(vectors, found, max(MIN_RESCORED, 2 * k)).positions[:k]

    def exact_top_positions(self, queries: Sequence[tuple[str, Query]], *, k: int) -> list[Positions]:
        """What `search` with `exact` would show for indexed documents, each itself left out, best first.

        Many queries share one pass over the vectors of the index, `PASS_CHUNKS` of their chunks at a time.

        Args:
            queries: doc_ids, and what they ask.
            k: how many at most for each.
        """
        pooled = [(doc_id, pool_long(query.vectors)) for doc_id, query in queries]
        everything = np.arange(self.snapshot.n_documents)
        best: list[Positions] = []
        for group in _passes(pooled):
            # One place more than the crowd needs, for the query's own.
            lists = self._neighbours.scan(
                np.concatenate([vectors.chunks for _, vectors in group]), everything, self.scoring.crowd + 2
            )
            ends = np.cumsum([len(vectors.chunks) for _, vectors in group]).tolist()
            for (doc_id, vectors), end in zip(group, ends, strict=True):
                rows = slice(end - len(vectors.chunks), end)
                allowed = self._allowed(None, doc_id)
                own = self.snapshot.position(doc_id)
                of_one = RankedLists(lists.documents[rows], lists.similarities[rows])
                if own is not None:
                    of_one = without_document(of_one, own)
                found = self._weighed(vectors, of_one, allowed, is_exact=True)
                best.append(self._rescored(vectors, found, max(MIN_RESCORED, 2 * k)).positions[:k])
        return best

    def _allowed(self, where: str | None, without: str | None) -> NDArray[np.bool_]:
        allowed = np.ones(self.snapshot.n_documents, bool) if where is None else self.snapshot.matching(where)
        position = self.snapshot.position(without) if without is not None else None
        if position is not None:
            allowed[position] = False
        return allowed

    def _evidence(self, vectors: EncodedDocument, allowed: NDArray[np.bool_], *, exact: bool) -> _Evidence:
        length = self.scoring.crowd + 1
        lists, is_exact = self._neighbours.lists(vectors.chunks, allowed, length, exact=exact)
        return self._weighed(vectors, lists, allowed, is_exact=is_exact)

    def _weighed(
        self, vectors: EncodedDocument, lists: RankedLists, allowed: NDArray[np.bool_], *, is_exact: bool
    ) -> _Evidence:
        """Lists of chunks, with that of the document vectors, and the thresholds of both."""
        whole = self.snapshot.document_index.nearest(vectors.document, allowed, self.scoring.document_crowd + 1)
        n_allowed = int(np.count_nonzero(allowed))
        return _Evidence(lists, whole, self._limits(vectors, lists, whole, n_allowed), n_allowed, is_exact)

    def _limits(self, vectors: EncodedDocument, lists: RankedLists, whole: RankedLists, n_allowed: int) -> Thresholds:
        n_tokens = np.array([chunk.n_tokens for chunk in vectors.chunk_spans])
        return thresholds(
            crowd_similarity(lists, self.scoring.crowd, n_allowed),
            float(crowd_similarity(whole, self.scoring.document_crowd, n_allowed)[0]),
            chunk_weights(n_tokens),
            self.scoring,
        )

    def _rescored(self, vectors: EncodedDocument, found: _Evidence, n_most: int) -> _Ranking:
        """The best documents by the lists, ranked by exact scores from the stored vectors."""
        candidates, _ = list_scores(found.lists, found.whole, found.limits, self.scoring)
        positions = candidates[:n_most]
        if not len(positions):
            nothing = Matches(np.empty((len(vectors.chunks), 0), np.float32), np.empty((len(vectors.chunks), 0), int))
            return _Ranking(positions, np.zeros(0), nothing, np.zeros(0, np.float32), found.limits, 0)
        matches = join(
            [
                best_matches(vectors.chunks, *self.snapshot.chunk_vectors(block), self._multiply)
                for block in self._neighbours.blocks(positions)
            ]
        )
        whole = self.snapshot.document_index.similarities(vectors.document, positions)
        limits = found.limits
        if not found.is_exact:
            lists = corrected(found.lists, positions, matches.similarities)
            limits = self._limits(vectors, lists, found.whole, found.n_allowed)
        scores = exact_scores(matches.similarities, whole, limits, self.scoring)
        order = np.lexsort((positions, -scores))
        return _Ranking(positions[order], scores[order], matches.of(order), whole[order], limits, len(candidates))

    def _hits(self, vectors: EncodedDocument, ranking: _Ranking, page: slice) -> tuple[Hit, ...]:
        positions = ranking.positions[page]
        breakdowns = break_down(
            vectors.chunk_spans,
            [self.snapshot.spans(position) for position in positions.tolist()],
            ranking.matches.of(np.arange(len(ranking.positions))[page]),
            ranking.whole[page],
            ranking.limits,
            self.scoring,
        )
        shown = zip(ranking.scores[page].tolist(), self.snapshot.documents(positions), breakdowns, strict=True)
        return tuple(
            Hit(page.start + rank, score, document, breakdown, coverage)
            for rank, (score, (document, coverage), breakdown) in enumerate(shown, start=1)
        )


def _passes(queries: Sequence[tuple[str, EncodedDocument]]) -> Iterator[list[tuple[str, EncodedDocument]]]:
    """Runs of queries of about so many chunks; a longer one is one by itself."""
    run: list[tuple[str, EncodedDocument]] = []
    n_chunks = 0
    for query in queries:
        if run and n_chunks + len(query[1].chunks) > PASS_CHUNKS:
            yield run
            run, n_chunks = [], 0
        run.append(query)
        n_chunks += len(query[1].chunks)
    if run:
        yield run
