"""Searching an index: thresholds -> ranks of each partition -> merged hits with breakdown. Encodes nothing.

A query is prepared once, from the reference that all partitions share, and each partition ranks its own documents
(`engine.search.local_partition`). So hits, order, scores, parts and counts of an exact search are the same however
many partitions there are. An index that is not partitioned is one.

Letters in shapes: N documents of all partitions, P partitions, R those scored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import Scored, break_down
from engine.scoring.evidence import Scoring
from engine.scoring.similarity import Multiply, products
from engine.search.local_partition import LocalPartition, allowed_documents
from engine.search.merging import merged
from engine.search.partition import Partition, Selection, Shown
from engine.search.query import Prepared, Query, prepare
from engine.search.scorer import Exact
from engine.store.replica import OpenReplica
from engine.store.snapshot import OpenGeneration, Positions, Snapshot

NamedT = TypeVar("NamedT")

PASS_CHUNKS = 4_096  # query chunks that are compared with the index in one pass over it
PASS_SCORES = 2_000_000  # scores of documents for queries that are in memory at one time

Answer = TypeVar("Answer")


class Searcher:
    """Answers queries over the partitions of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        scoring: Scoring | None = None,
        generation: OpenGeneration | None = None,
        scan_chunks: int | None = None,
        replica: OpenReplica | None = None,
        multiply: Multiply = products,
    ) -> None:
        """Search a snapshot.

        Args:
            snapshot: stays open meanwhile.
            scoring: the constants.
            generation: one that is not published yet, in place of the snapshot's own.
            scan_chunks: target chunks in memory at one time, `SCAN_BLOCK_CHUNKS` by default.
            replica: a copy of the index on a GPU, searched in its place.
            multiply: products of exact scans and of rescoring.
        """
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        self._multiply = multiply
        self._partitions = [
            LocalPartition(part, self.scoring, generation, scan_chunks, replica, multiply) for part in snapshot.parts
        ]

    def search(
        self,
        query: Query,
        *,
        k: int = 10,
        offset: int = 0,
        where: str | None = None,
        without: str | Sequence[str] | None = None,
        exact: bool = False,
        min_pair: float = 0.0,
    ) -> Result:
        """Rank the documents of the index against a query.

        A query of very many chunks is searched with fewer, pooled ones, see `engine.search.long_query`;
        the coverage of the result says so, and such a result is never certified.

        Args:
            query: the document to search with.
            k: hits wanted.
            offset: hits to leave out first, for pages.
            where: metadata filter, see `engine.store.where`.
            without: doc_id of a document to leave out, or several.
            exact: score every document, whatever index there is; a search by containment always does, since lists
                and postings choose similar documents.
            min_pair: contribution from which on a section pair is a part of its own, see `SmallPairs`.

        Raises:
            QueryError: k or offset out of range, or the filter does not parse.
        """
        if k < 1 or offset < 0:
            raise QueryError(f"k is {k} and offset {offset}; k must be at least 1 and offset at least 0")
        started = time.perf_counter()
        prepared = self.prepare(query)
        selection = Selection(where, _names(without), exact)
        ranks = self._each(lambda partition: partition.rank(prepared, selection, offset + k))
        best = merged([one.best for one in ranks], self._bases, offset + k)
        is_certified = all(one.is_exact and one.is_complete for one in ranks)
        is_pooled = prepared.vectors.coverage.chunks_pooled > 1
        return Result(
            query=query.document,
            query_coverage=prepared.vectors.coverage,
            hits=self._hits(query, prepared, best.of(slice(offset, None)), offset, min_pair),
            status=Status.CERTIFIED if is_certified and not is_pooled else Status.ESTIMATED,
            n_found=sum(one.n_found for one in ranks),
            n_evident=sum(one.n_evident for one in ranks),
            n_searched=sum(one.n_searched for one in ranks),
            seconds=time.perf_counter() - started,
            language=self.snapshot.language,
            reference=self.snapshot.reference.version,
        )

    def rank(
        self, query: Query, *, k: int, where: str | None = None, without: str | Sequence[str] | None = None
    ) -> tuple[Positions, NDArray[np.float64]]:
        """Positions and scores of the best documents, those of `search`, without a breakdown; no text is read.

        Args:
            query: the document to search with.
            k: how many at most.
            where: metadata filter, see `engine.store.where`.
            without: doc_id of a document to leave out, or several.

        Returns:
            Two of (R,), R at most k: rows of the snapshot, and scores above 0, best first.

        Raises:
            QueryError: k is below 1, or the filter does not parse.
        """
        if k < 1:
            raise QueryError(f"k is {k}; it must be at least 1")
        prepared, selection = self.prepare(query), Selection(where, _names(without))
        ranks = self._each(lambda partition: partition.rank(prepared, selection, k))
        best = merged([one.best for one in ranks], self._bases, k)
        return best.positions, best.scores

    def exact_top_positions(self, queries: Sequence[tuple[str, Query]], *, k: int) -> list[Positions]:
        """The best documents that `search` with `exact` finds for indexed documents, each itself left out.

        Many queries share one pass over the vectors of the index, `PASS_CHUNKS` of their chunks at a time.

        Args:
            queries: doc_ids, and the queries.
            k: how many at most for each.
        """
        at = [(-1 if (place := self.snapshot.position(doc_id)) is None else place, one) for doc_id, one in queries]
        everything = np.ones(self.snapshot.n_documents, bool)
        return [positions for positions, _ in self.tops(at, everything, k=k, exact=True)]

    def tops(
        self, queries: Sequence[tuple[int, Query]], allowed: NDArray[np.bool_], *, k: int, exact: bool = False
    ) -> Iterator[tuple[Positions, NDArray[np.float64]]]:
        """The best documents that `search` finds for many queries, as positions and scores above 0, best first.

        Args:
            queries: each with the position of a document that is left out of its hits, -1 for none.
            allowed: (N,) the documents that may be found.
            k: how many at most for each.
            exact: score every document for every query.
        """
        prepared = [(own, self.prepare(query)) for own, query in queries]
        if not (exact or self.is_exhaustive(allowed)):
            for own, one in prepared:
                of_part = self._of_parts(allowed & (np.arange(len(allowed)) != own))
                ranks = [part.rank_among(one, others, k).best for part, others in of_part]
                best = merged(ranks, self._bases, k)
                yield best.positions, best.scores
            return
        for group in _passes(prepared, max(1, PASS_SCORES // max(1, int(np.count_nonzero(allowed))))):
            for best in self._exact_tops(group, allowed, k):
                yield best.positions, best.scores

    def scores_of(self, query: Query, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of given documents, also of those with a score of 0."""
        prepared, scores = self.prepare(query), np.zeros(len(positions))
        for owner, places, own in self._owned(positions):
            scores[places] = self._partitions[owner].scores_of(prepared, own)
        return scores

    def best_hits(self, queries: Sequence[tuple[Query, Prepared]], allowed: NDArray[np.bool_]) -> list[Hit | None]:
        """The best hit of each of several queries, from all documents; None where none has a score above 0.

        The queries share passes over vectors and term counts.

        Args:
            queries: each with what `prepare` made of it.
            allowed: (N,) the documents that may be found.
        """
        best: list[Hit | None] = []
        for group in _passes(queries, max(1, PASS_SCORES // max(1, int(np.count_nonzero(allowed))))):
            tops = self._exact_tops([(-1, one) for _, one in group], allowed, 1)
            for (query, one), top in zip(group, tops, strict=True):
                best += self._hits(query, one, top, 0) or (None,)
        return best

    def _exact_tops(self, queries: Sequence[tuple[int, Prepared]], allowed: NDArray[np.bool_], k: int) -> list[Exact]:
        """The best documents for several queries, see `LocalPartition.exact_tops`, of all partitions."""
        tops = []
        for base, (part, own) in zip(self._bases.tolist(), self._of_parts(allowed), strict=True):
            tops.append(part.exact_tops([(place - base, one) for place, one in queries], own, k))
        return [merged(of_query, self._bases, k) for of_query in zip(*tops, strict=True)]

    def is_exhaustive(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether every document is scored for every query, as containment and small indexes need."""
        return all(part.is_exhaustive(own) for part, own in self._of_parts(allowed))

    def _of_parts(self, allowed: NDArray[np.bool_]) -> Iterator[tuple[LocalPartition, NDArray[np.bool_]]]:
        """Each partition with its share of a mask (N,)."""
        return zip(self._partitions, np.split(allowed, self._bases[1:]), strict=True)

    def prepare(self, query: Query) -> Prepared:
        """Take thresholds and weights of a query from the reference, its own content left out of it."""
        return prepare(query, self.snapshot, self.scoring, self._multiply)

    def allowed(self, where: str | None, without: str | Sequence[str] | None) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter and are not to be left out."""
        return allowed_documents(self.snapshot, where, _names(without))

    @property
    def _bases(self) -> NDArray[np.int64]:
        """(P,) position of the first document of each partition among those of all."""
        sizes = [partition.n_documents for partition in self._partitions]
        return np.cumsum([0, *sizes], dtype=np.int64)[:-1]

    def _each(self, ask: Callable[[Partition], Answer]) -> list[Answer]:
        """Ask all partitions, in threads: scans of words and products of vectors leave the interpreter free."""
        if len(self._partitions) == 1:
            return [ask(self._partitions[0])]
        with ThreadPoolExecutor(min(len(self._partitions), os.cpu_count() or 1)) as pool:
            return list(pool.map(ask, self._partitions))

    def _hits(
        self, query: Query, prepared: Prepared, exact: Exact, offset: int, min_pair: float = 0.0
    ) -> tuple[Hit, ...]:
        if not len(exact.positions):
            return ()
        shown = self._shown(exact.positions)
        scored = Scored(
            prepared.limits,
            exact.matches,
            exact.components,
            exact.cosines,
            prepared.weights,
            self.scoring,
            prepared.words,
            prepared.pairs,
            self.snapshot.language,
            prepared.text,
            prepared.section_weights,
            self.snapshot.counts_titles,
            min_pair,
        )
        breakdowns = break_down(
            query.document,
            prepared.vectors.chunk_spans,
            [one.document for one in shown],
            [one.spans for one in shown],
            scored,
        )
        return tuple(
            Hit(rank, score, one.document, breakdown, one.coverage, one.has_vectors)
            for rank, (score, one, breakdown) in enumerate(
                zip(exact.scores.tolist(), shown, breakdowns, strict=True), start=offset + 1
            )
        )

    def _shown(self, positions: Positions) -> list[Shown]:
        """The documents at positions among those of all, in that order, each from its partition."""
        found: dict[int, Shown] = {}
        for owner, places, own in self._owned(positions):
            found |= zip(places.tolist(), self._partitions[owner].show(own), strict=True)
        return [found[row] for row in range(len(positions))]

    def _owned(self, positions: Positions) -> Iterator[tuple[int, NDArray[np.int64], Positions]]:
        """Group documents (R,) by partition: its number, places among the R, and positions in the partition."""
        owners = np.searchsorted(self._bases, positions, side="right") - 1
        for owner in np.unique(owners).tolist():
            places = np.flatnonzero(owners == owner)
            yield owner, places, positions[places] - self._bases[owner]


def _names(without: str | Sequence[str] | None) -> tuple[str, ...]:
    return (without,) if isinstance(without, str) else tuple(without or ())


def _passes(
    queries: Sequence[tuple[NamedT, Prepared]], most: int | None = None
) -> Iterator[list[tuple[NamedT, Prepared]]]:
    """Runs of at most so many queries of about so many chunks; a longer one is one by itself."""
    run: list[tuple[NamedT, Prepared]] = []
    n_chunks = 0
    for query in queries:
        size = len(query[1].vectors.chunks)
        if run and (n_chunks + size > PASS_CHUNKS or len(run) == most):
            yield run
            run, n_chunks = [], 0
        run.append(query)
        n_chunks += size
    if run:
        yield run
