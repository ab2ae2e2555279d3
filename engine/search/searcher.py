"""Searching an index: thresholds -> ranks of each partition -> merged hits with breakdown. Encodes nothing.

A query is prepared once, from the reference that all partitions share, and each partition ranks its own documents
(`engine.search.partition`). So hits, order, scores, parts and counts of an exact search do not depend on the
number of partitions. An index that is not partitioned is one partition.

Letters in shapes: N documents of all partitions, P partitions, R scored documents.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.result import Hit, Result, Status
from engine.scoring.breakdown import Scored, break_down
from engine.scoring.evidence import Scoring
from engine.search.partition import (
    LocalPartition,
    Partition,
    Ranked,
    Ranks,
    Selection,
    Shown,
    Survey,
    allowed_documents,
    merged,
    merged_ranks,
)
from engine.search.query import Prepared, Query, prepare
from engine.search.request import AUTO, Request
from engine.search.scorer import Exact, Scan, join_exact
from engine.store.partitioned import Snapshot
from engine.store.snapshot import OpenGeneration, Positions

if TYPE_CHECKING:
    from engine.store.ann import OpenReplica

NamedT = TypeVar("NamedT")

PASS_CHUNKS = 4_096  # query chunks that are compared with the index in one pass over it
PASS_SCORES = 2_000_000  # scores of documents for queries that are in memory at one time

Answer = TypeVar("Answer")


class Searcher:
    """Searches the partitions of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        scoring: Scoring | None = None,
        generation: OpenGeneration | None = None,
        scan_chunks: int | None = None,
        replica: OpenReplica | None = None,
        scan: Scan | None = None,
        partitions: Sequence[Partition] | None = None,
    ) -> None:
        """Search a snapshot.

        Args:
            replica: lists on a GPU, in place of those of the generation.
            scan: compares all chunks on a GPU, in place of lists.
        """
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        local = partial(
            LocalPartition,
            scoring=self.scoring,
            generation=generation,
            scan_chunks=scan_chunks,
            replica=replica,
            scan=scan,
        )
        self._partitions = [local(part) for part in snapshot.parts] if partitions is None else partitions

    def search(self, query: Query, request: Request | None = None) -> Result:
        """Rank the documents of the index against a query.

        A query of very many chunks is searched with fewer, pooled chunks, see `engine.search.query`.
        The coverage of the result records this, and such a result is never certified. A search by containment scores
        every document, since lists and postings choose similar documents.

        Raises:
            QueryError: the filter does not parse.
        """
        request = request or Request()
        started = time.perf_counter()
        prepared = self.prepare(query)
        floor = self.snapshot.reference.floor_of(len(query.document.text), self.scoring)
        page = slice(request.offset, request.offset + request.k)
        ranks, hits = self._ranks_and_hits(query, prepared, Selection.of(request), page, request.min_pair)
        least = (0.0 if floor is None else floor.p99) if request.least == AUTO else float(request.least or 0.0)
        hits = tuple(hit for hit in hits if hit.score >= least)
        is_certified = ranks.is_exact and ranks.is_complete
        is_pooled = prepared.vectors.coverage.chunks_pooled > 1
        return Result(
            query=query.document,
            query_coverage=prepared.vectors.coverage,
            hits=hits,
            status=Status.CERTIFIED if is_certified and not is_pooled else Status.ESTIMATED,
            n_found=ranks.n_found,
            n_evident=ranks.n_evident,
            n_searched=ranks.n_searched,
            seconds=time.perf_counter() - started,
            language=self.snapshot.language,
            reference=self.snapshot.reference.version,
            floor=floor,
            wording=self.snapshot.reference.stock,
        )

    def _ranks_and_hits(
        self, query: Query, prepared: Prepared, selection: Selection, page: slice, min_pair: float
    ) -> tuple[Ranks, tuple[Hit, ...]]:
        """The ranking of all partitions, and its hits on a page."""
        ranks = self.ranks(prepared, selection, page.stop)
        best = ranks.best.exact.of(slice(page.start, None))
        return ranks, self.hits(query, prepared, best, self.show(best.positions), page.start, min_pair)

    def ranks(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """The best documents of all partitions, as one partition ranks its own; see `Partition.rank`."""
        ranks = self._each(lambda number: self._partitions[number].rank(prepared, selection, n_most))
        return merged_ranks([*ranks.values()], self._bases[[*ranks]], n_most)

    def rank(self, query: Query, request: Request) -> tuple[Positions, NDArray[np.float64]]:
        """Positions and scores of the best documents, the same as of `search`, without a breakdown; reads no text.

        Returns:
            Two arrays (R,), R at most k: positions in the snapshot, and scores above 0, best first.

        Raises:
            QueryError: the filter does not parse.
        """
        best = self.ranks(self.prepare(query), Selection.of(request), request.k).best.exact
        return best.positions, best.scores

    def exact_top_positions(self, queries: Sequence[tuple[str, Query]], *, k: int) -> list[Positions]:
        """The best documents that `search` with `exact` finds for indexed documents, each without itself.

        Many queries share one pass over the vectors of the index, `PASS_CHUNKS` of their chunks at a time.
        """
        at = [(-1 if (place := self.snapshot.position(doc_id)) is None else place, one) for doc_id, one in queries]
        return [positions for positions, _ in self.tops(at, Selection(exact=True), k=k)]

    def survey(self, selection: Selection) -> Survey:
        """The documents that a search may find, of all partitions; see `Partition.survey`.

        Raises:
            QueryError: the filter does not parse.
        """
        found = self._each(lambda number: self._partitions[number].survey(selection))
        bases = self._bases
        return Survey(
            np.concatenate([found[number].positions + bases[number] for number in sorted(found)]),
            all(one.is_exhaustive for one in found.values()),
            all(one.is_complete for one in found.values()),
        )

    def tops(
        self, queries: Sequence[tuple[int, Query]], selection: Selection, *, k: int
    ) -> Iterator[tuple[Positions, NDArray[np.float64]]]:
        """The best documents that `search` finds for many queries, as positions and scores above 0, best first.

        Args:
            queries: each with its own position in the index, which is left out of its hits; -1 for none.
        """
        prepared = [(own, self.prepare(query)) for own, query in queries]
        survey = self.survey(selection)
        if not survey.is_exhaustive:
            for (own, query), (_, one) in zip(queries, prepared, strict=True):
                without = () if own < 0 else (query.document.doc_id,)
                others = replace(selection, without=(*selection.without, *without))
                best = self.ranks(one, others, k).best.exact
                yield best.positions, best.scores
            return
        for group in _passes(prepared, max(1, PASS_SCORES // max(1, len(survey.positions)))):
            for top in self.exact_tops(group, selection, k):
                yield top.exact.positions, top.exact.scores

    def scores_of(self, query: Query, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of given documents, also of those with a score of 0."""
        return self.exact(self.prepare(query), positions).scores

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """The scores of given documents (R,) for a prepared query, in that order; R is at least 1."""
        owned = {owner: (places, own) for owner, places, own in self._owned(positions)}
        found = self._each(lambda number: self._partitions[number].exact(prepared, owned[number][1]), list(owned))
        scored = reduce(join_exact, found.values()).of(np.argsort(np.concatenate([owned[one][0] for one in found])))
        return replace(scored, positions=positions)

    def best_hits(
        self, queries: Sequence[tuple[Query, Prepared]], selection: Selection, n_documents: int
    ) -> list[Hit | None]:
        """The best hit of each of several queries, from all documents; None where none has a score above 0.

        The queries share passes over vectors and term counts.
        """
        best: list[Hit | None] = []
        for group in _passes(queries, max(1, PASS_SCORES // max(1, n_documents))):
            tops = self.exact_tops([(-1, one) for _, one in group], selection, 1)
            for (query, one), top in zip(group, tops, strict=True):
                best += self.hits(query, one, top.exact, self.show(top.exact.positions), 0) or (None,)
        return best

    def exact_tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, k: int) -> list[Ranked]:
        """The best of all documents for several queries, as one partition ranks its own; see `Partition.tops`."""
        bases = self._bases

        def tops(number: int) -> list[Ranked]:
            base = int(bases[number])
            return self._partitions[number].tops([(own - base, one) for own, one in queries], selection, k)

        found = self._each(tops)
        rankings = zip(*(found[number] for number in sorted(found)), strict=True)
        return [merged(of_query, bases, k) for of_query in rankings]

    def prepare(self, query: Query) -> Prepared:
        """Compute thresholds and weights of a query from the reference; see `engine.search.query.prepare`."""
        return prepare(query, self.snapshot, self.scoring)

    def allowed(self, request: Request) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass the metadata filter and are not to be left out."""
        return allowed_documents(self.snapshot, request.filter, request.without)

    @property
    def _bases(self) -> NDArray[np.int64]:
        """(P,) position of the first document of each partition among those of all."""
        sizes = [part.n_documents for part in self.snapshot.parts]
        return np.cumsum([0, *sizes], dtype=np.int64)[:-1]

    def _each(self, ask: Callable[[int], Answer], numbers: Sequence[int] | None = None) -> dict[int, Answer]:
        """Query partitions by number, in threads: scans of words and products of vectors release the GIL."""
        asked = range(len(self._partitions)) if numbers is None else numbers
        if len(asked) < 2:
            return {number: ask(number) for number in asked}
        with ThreadPoolExecutor(min(len(asked), os.cpu_count() or 1)) as pool:
            contexts = [copy_context() for _ in asked]  # with the limits of this thread
            return dict(
                zip(asked, pool.map(lambda context, number: context.run(ask, number), contexts, asked), strict=True)
            )

    def hits(
        self,
        query: Query,
        prepared: Prepared,
        exact: Exact,
        shown: Sequence[Shown],
        offset: int,
        min_pair: float = 0.0,
    ) -> tuple[Hit, ...]:
        """Scored documents (R,), in that order, as hits with a breakdown, ranked from `offset` + 1."""
        if not len(exact.positions):
            return ()
        scored = Scored(
            prepared.limits,
            exact.matches,
            exact.components,
            prepared.weights,
            self.scoring,
            prepared.words,
            prepared.pairs,
            prepared.text,
            prepared.section_weights,
            min_pair,
            prepared.skip,
        )
        breakdowns = break_down(
            prepared.vectors.chunk_spans,
            [one.document for one in shown],
            [one.spans for one in shown],
            [one.bits for one in shown],
            scored,
        )
        return tuple(
            Hit(rank, score, one.document, breakdown, one.coverage, one.has_vectors)
            for rank, (score, one, breakdown) in enumerate(
                zip(exact.scores.tolist(), shown, breakdowns, strict=True), start=offset + 1
            )
        )

    def show(self, positions: Positions) -> list[Shown]:
        """Documents at some positions (R,), in that order, each from its partition; see `Partition.show`."""
        owned = {owner: (places, own) for owner, places, own in self._owned(positions)}
        shown = self._each(lambda number: self._partitions[number].show(owned[number][1]), list(owned))
        found: dict[int, Shown] = {}
        for owner, (places, _) in owned.items():
            found |= zip(places.tolist(), shown[owner], strict=True)
        return [found[row] for row in range(len(positions))]

    def _owned(self, positions: Positions) -> Iterator[tuple[int, NDArray[np.int64], Positions]]:
        """Group documents (R,) by partition: its number, places among the R, and positions in the partition."""
        owners = np.searchsorted(self._bases, positions, side="right") - 1
        for owner in sorted(set(owners.tolist())):  # `np.unique` loads masked arrays
            places = np.flatnonzero(owners == owner)
            yield owner, places, positions[places] - self._bases[owner]


def _passes(
    queries: Sequence[tuple[NamedT, Prepared]], most: int | None = None
) -> Iterator[list[tuple[NamedT, Prepared]]]:
    """Runs of at most `most` queries and `PASS_CHUNKS` chunks; a query with more chunks is a run by itself."""
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
