"""Searching an index: thresholds -> ranks of each partition -> merged hits with breakdown. Encodes nothing.

A query is prepared once, from the reference that all partitions share, and each partition ranks its own documents
(`engine.search.partition`). So hits, order, scores, parts and counts of an exact search do not depend on the
number of partitions. An index that is not partitioned is one partition.

Hits need not repeat each other. A group is the documents with one value of a metadata field, as the members of a
family of patents. Its best one is the hit, as if the others were left out.

A diverse order has hits that match new sections of the query before those that repeat them.

The first `DIVERSIFIED` ranks by score are reordered, whatever page is requested, so that pages join to one list.
Let c_i(t) be the contribution of section i of the query to the score of hit t, over all sections of t. After the hits
T, the next is the hit t with the largest gain

    sum_i max(0, c_i(t) - max_{u in T} c_i(u))

which is the greedy choice for the sum over sections of the best contribution of any shown hit (Nemhauser, Wolsey &
Fisher 1978: at least 1 - 1/e of the largest possible sum). Section pairs below a minimum (`min_pair`) do
not count. Equal gains are ordered by score, then by doc_id. The
first hit is the one with the largest sum over sections. Ranks beyond `DIVERSIFIED` keep the order of scores.

Letters in shapes: N documents of all partitions, P partitions, R scored documents or hits, A sections of the query.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import replace
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import step
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import Prepared, Scored, break_down
from engine.scoring.evidence import Floor, Scoring
from engine.scoring.parts import pair_columns
from engine.search import partition
from engine.search.query import Query, prepare
from engine.search.request import AUTO, Request
from engine.search.scorer import Exact, Scan, join_exact
from engine.store.partitioned import Snapshot
from engine.store.snapshot import OpenGeneration, Positions

if TYPE_CHECKING:
    from engine.store.ann import OpenReplica

AnswerT = TypeVar("AnswerT")

PASS_CHUNKS = 4_096  # query chunks that are compared with the index in one pass over it
PASS_SCORES = 2_000_000  # scores of documents for queries that are in memory at one time
DIVERSIFIED = 50  # ranks that are reordered
_SAME = 1e-9  # smaller differences of gains come from the order of a sum
_ID_BYTES = 100  # of a document in its group
_RANKED = 10  # documents that are looked at for each hit that is wanted, to find the groups


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
        partitions: Sequence[partition.Partition] | None = None,
    ) -> None:
        """Search a snapshot.

        Args:
            replica: lists on a GPU, in place of those of the generation.
            scan: compares all chunks on a GPU, in place of lists.
        """
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        local = partial(
            partition.LocalPartition,
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
        """
        request = request or Request()
        started = time.perf_counter()
        prepared, floor = self.prepare(query), self.floor(query)
        page = slice(request.offset, request.offset + request.k)
        ranks = self.ranks(prepared, partition.Selection.of(request), page.stop)
        best = ranks.best.exact.of(slice(page.start, None))
        hits = self.hits(prepared, best, self.show(best.positions), page.start, request.min_pair)
        hits = tuple(hit for hit in hits if hit.score >= least_score(request, floor))
        return self.result(query, prepared, ranks, hits, started)

    def result(
        self, query: Query, prepared: Prepared, ranks: partition.Ranks, hits: tuple[Hit, ...], started: float
    ) -> Result:
        """The result of one query, of which some hits are shown; `started` is the time at which its search began."""
        reference, coverage = self.snapshot.reference, prepared.vectors.coverage
        is_certified = ranks.is_exact and ranks.is_complete and coverage.chunks_pooled <= 1
        return Result(
            query=query.document,
            query_coverage=coverage,
            hits=hits,
            status=Status.CERTIFIED if is_certified else Status.ESTIMATED,
            n_found=ranks.n_found,
            n_evident=ranks.n_evident,
            n_searched=ranks.n_searched,
            seconds=time.perf_counter() - started,
            language=self.snapshot.language,
            reference=reference.version,
            floor=self.floor(query),
            wording=reference.stock,
        )

    def floor(self, query: Query) -> Floor | None:
        """The scores of unrelated documents for a query of its length; None where they are not known."""
        return self.snapshot.reference.floor_of(len(query.document.text), self.scoring)

    def ranks(self, prepared: Prepared, selection: partition.Selection, n_most: int) -> partition.Ranks:
        """The best documents of all partitions, as one partition ranks its own; see `Partition.rank`."""
        ranks = self._each(lambda number: self._partitions[number].rank(prepared, selection, n_most))
        return partition.merged_ranks([*ranks.values()], self.snapshot.bases[[*ranks]], n_most)

    def rank(self, query: Query, request: Request) -> tuple[Positions, NDArray[np.float64]]:
        """Positions and scores of the best documents, the same as of `search`, without a breakdown; reads no text.

        Returns:
            Two arrays (R,), R at most k: positions in the snapshot, and scores above 0, best first.
        """
        best = self.ranks(self.prepare(query), partition.Selection.of(request), request.k).best.exact
        return best.positions, best.scores

    def survey(self, selection: partition.Selection) -> partition.Survey:
        """The documents that a search may find, of all partitions; see `Partition.survey`."""
        surveys = self._each(lambda number: self._partitions[number].survey(selection))
        return partition.Survey(
            np.concatenate([surveys[number].positions + self.snapshot.bases[number] for number in sorted(surveys)]),
            all(survey.is_exhaustive for survey in surveys.values()),
            all(survey.is_complete for survey in surveys.values()),
        )

    def tops(
        self, queries: Sequence[tuple[int, Query]], selection: partition.Selection, *, k: int
    ) -> Iterator[tuple[Positions, NDArray[np.float64]]]:
        """The best documents that `search` finds for many queries, as positions and scores above 0, best first.

        Where all documents are scored, the queries share passes over them, of `PASS_CHUNKS` query chunks each.

        Args:
            queries: documents of the index with their positions, each of which is left out of its own hits.
        """
        prepared = [(position, self.prepare(query)) for position, query in queries]
        survey = self.survey(selection)
        if not survey.is_exhaustive:
            for (_, query), (_, ready) in zip(queries, prepared, strict=True):
                others = replace(selection, without=(*selection.without, query.document.doc_id))
                best = self.ranks(ready, others, k).best.exact
                yield best.positions, best.scores
            return
        for group in _passes(prepared, len(survey.positions)):
            for top in self.exact_tops(group, selection, k):
                yield top.exact.positions, top.exact.scores

    def scores_of(self, query: Query, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of given documents, also of those with a score of 0."""
        return self.exact(self.prepare(query), positions).scores

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """The scores of given documents (R,) for a prepared query, in that order; R is at least 1."""
        parts = self._owned(positions, lambda part, own: part.exact(prepared, own))
        places = np.concatenate([places for places, _ in parts])
        return replace(reduce(join_exact, (own for _, own in parts)).of(np.argsort(places)), positions=positions)

    def best_hits(
        self, queries: Sequence[Prepared], selection: partition.Selection, n_documents: int
    ) -> list[Hit | None]:
        """The best hit of each of several queries, from all documents; None where none has a score above 0.

        The queries share passes over vectors and term counts.
        """
        best: list[Hit | None] = []
        for group in _passes([(-1, prepared) for prepared in queries], n_documents):
            for (_, prepared), top in zip(group, self.exact_tops(group, selection, 1), strict=True):
                best += self.hits(prepared, top.exact, self.show(top.exact.positions), 0) or (None,)
        return best

    def exact_tops(
        self, queries: Sequence[tuple[int, Prepared]], selection: partition.Selection, k: int
    ) -> list[partition.Ranked]:
        """The best of all documents for several queries, as one partition ranks its own; see `Partition.tops`."""
        bases = self.snapshot.bases

        def tops(number: int) -> list[partition.Ranked]:
            base = int(bases[number])
            return self._partitions[number].tops(
                [(position - base, query) for position, query in queries], selection, k
            )

        by_partition = self._each(tops)
        rankings = zip(*(by_partition[number] for number in sorted(by_partition)), strict=True)
        return [partition.merged(of_query, bases, k) for of_query in rankings]

    def prepare(self, query: Query) -> Prepared:
        """Compute thresholds and weights of a query from the reference; see `engine.search.query.prepare`."""
        return prepare(query, self.snapshot, self.scoring)

    def allowed(self, request: Request) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass the metadata filter and are not to be left out."""
        return partition.allowed_documents(self.snapshot, request.filter, request.without)

    def _owned(
        self, positions: Positions, call: Callable[[partition.Partition, Positions], AnswerT]
    ) -> list[tuple[Positions, AnswerT]]:
        """Call each partition with its own of some documents (R,): their places among the R, and the answer."""
        owned = {owner: (places, own) for owner, places, own in self.snapshot.split(positions)}
        answers = self._each(lambda number: call(self._partitions[number], owned[number][1]), list(owned))
        return [(owned[number][0], answer) for number, answer in answers.items()]

    def _each(self, call: Callable[[int], AnswerT], numbers: Sequence[int] | None = None) -> dict[int, AnswerT]:
        """Call partitions by number, in threads: scans of words and products of vectors release the GIL."""
        chosen = range(len(self._partitions)) if numbers is None else numbers
        if len(chosen) < 2:
            return {number: call(number) for number in chosen}
        from concurrent.futures import ThreadPoolExecutor  # loads what writes logs

        with ThreadPoolExecutor(min(len(chosen), os.cpu_count() or 1)) as pool:
            contexts = [copy_context() for _ in chosen]  # with the limits of this thread
            answers = pool.map(lambda context, number: context.run(call, number), contexts, chosen)
            return dict(zip(chosen, answers, strict=True))

    def hits(
        self, prepared: Prepared, exact: Exact, shown: Sequence[partition.Shown], offset: int, min_pair: float = 0.0
    ) -> tuple[Hit, ...]:
        """Scored documents (R,), in that order, as hits with a breakdown, ranked from `offset` + 1."""
        if not len(exact.positions):
            return ()
        scored = Scored(prepared, exact.matches, exact.components, self.scoring, min_pair)
        breakdowns = break_down(
            [target.document for target in shown],
            [target.spans for target in shown],
            [target.bits for target in shown],
            scored,
        )
        ranked_targets = enumerate(zip(exact.scores.tolist(), shown, breakdowns, strict=True), start=offset + 1)
        return tuple(
            Hit(rank, score, target.document, breakdown, target.coverage, target.has_vectors)
            for rank, (score, target, breakdown) in ranked_targets
        )

    def show(self, positions: Positions) -> list[partition.Shown]:
        """Documents at some positions (R,), in that order, each from its partition; see `Partition.show`."""
        by_place: dict[int, partition.Shown] = {}
        for places, shown in self._owned(positions, lambda part, own: part.show(own)):
            by_place.update(zip(places.tolist(), shown, strict=True))
        return [by_place[place] for place in range(len(positions))]


def least_score(request: Request, floor: Floor | None) -> float:
    """The score that hits must reach; `AUTO` is that of all but one in a hundred unrelated documents."""
    if request.least == AUTO:
        return 0.0 if floor is None else floor.p99
    return float(request.least or 0.0)


def _passes(queries: Sequence[tuple[int, Prepared]], n_documents: int) -> Iterator[list[tuple[int, Prepared]]]:
    """Runs of at most `PASS_SCORES` scores and `PASS_CHUNKS` chunks, and of at least one query."""
    most = max(1, PASS_SCORES // max(1, n_documents))
    run: list[tuple[int, Prepared]] = []
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


def ranked(searcher: Searcher, query: Query, request: Request) -> Result:
    """Search with one hit for each group and in a diverse order, as far as these are requested."""
    if request.one_per is None:
        return _diversified(searcher, query, request)
    groups = _groups(searcher, query, request, request.one_per)
    others = {best: tuple(others) for best, *others in groups}
    result = _diversified(searcher, query, request.leaving_out(*chain.from_iterable(others.values())))
    return replace(result, hits=tuple(replace(hit, others=others.get(hit.doc_id, ())) for hit in result.hits))


def _groups(searcher: Searcher, query: Query, request: Request, field: str) -> list[list[str]]:
    """The best documents by the value of a field, each group and all of them best first; no value, no group."""
    n_hits = max(request.offset + request.k, DIVERSIFIED if request.diversify else 0)
    n_most = _RANKED * n_hits
    while True:
        positions, _ = searcher.rank(query, replace(request, k=n_most, offset=0))
        groups: dict[str, list[str]] = {}
        for document, _ in searcher.snapshot.documents(positions):
            step(_ID_BYTES)
            value = document.metadata.get(field)
            key = f"document {document.doc_id}" if value is None else json.dumps(value)
            groups.setdefault(key, []).append(document.doc_id)
        if len(groups) >= n_hits or len(positions) < n_most:
            return list(groups.values())
        n_most *= _RANKED


def _diversified(searcher: Searcher, query: Query, request: Request) -> Result:
    if not request.diversify or request.offset >= DIVERSIFIED:
        return searcher.search(query, request)
    stop = request.offset + request.k
    result = searcher.search(query, replace(request, k=max(stop, DIVERSIFIED), offset=0))
    hits = result.hits
    order = diverse_order(section_contributions(hits[:DIVERSIFIED], len(query.document.sections)))
    chosen = [*(hits[place] for place in order), *hits[DIVERSIFIED:]][request.offset : stop]
    return replace(result, hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(chosen, request.offset + 1)))


def section_contributions(hits: Sequence[Hit], n_sections: int) -> NDArray[np.float64]:
    """The contribution of each section of the query to each hit."""
    contributions = np.zeros((len(hits), n_sections))
    for row, hit in enumerate(hits):
        pairs = pair_columns(hit.breakdown.pairs)
        contributions[row] = np.bincount(pairs.query_sections, pairs.contributions, minlength=n_sections)
    return contributions


def diverse_order(contributions: NDArray[np.float64]) -> list[int]:
    """The greedy order of hits; see the docstring of the module.

    Args:
        contributions: (R, A) of hits that are ordered by score, then by doc_id.

    Returns:
        R places of hits.
    """
    left = list(range(len(contributions)))
    best = np.zeros(contributions.shape[1])
    order: list[int] = []
    while left:
        gains = np.maximum(contributions[left] - best, 0).sum(axis=1)
        place = left[int(np.argmax(gains >= gains.max() - _SAME))]
        order.append(place)
        best = np.maximum(best, contributions[place])
        left.remove(place)
    return order
