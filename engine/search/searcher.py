"""Searching one snapshot: thresholds -> candidates -> exact scores -> hits with breakdown. Encodes nothing.

The score of a document depends on query, document and reference alone (`engine.scoring.evidence`).
Small indexes, strict filters and `exact` score every document. Else lists of an approximate index
and postings of words choose candidates, and those are scored exactly.

Candidates are ranked in tiers, so that a rank does not depend on how many hits are wanted: the
first 200 ranks are filled from the 400 best candidates, the ranks up to 1,000 from the 2,000 best,
and so on; beyond the last tier all documents are scored. What a tier has ranked stays.

Letters in shapes: I query chunks, N documents of the index, R those scored, D width.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import Scored, break_down
from engine.scoring.evidence import Components, Scoring, Thresholds, margin
from engine.scoring.lists import RankedLists
from engine.scoring.similarity import Multiply, products
from engine.search.candidates import CandidateLists
from engine.search.pool import Pool, without_positions
from engine.search.query import Prepared, Query, prepare
from engine.search.scorer import Exact, Scorer, join_exact
from engine.store.replica import OpenReplica
from engine.store.snapshot import OpenGeneration, Positions, Snapshot

NamedT = TypeVar("NamedT")

# Ranks, and the candidates they are filled from.
TIERS = ((200, 400), (1_000, 2_000), (5_000, 10_000))
LIST_LENGTH = 60  # documents that each query chunk names as candidates
PASS_CHUNKS = 4_096  # query chunks that are compared with the index in one pass over it
PASS_SCORES = 2_000_000  # scores of documents for queries that are in memory at one time


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Documents in their order, and how many have any part in common with the query."""

    exact: Exact  # the ranks that were wanted
    n_found: int
    n_evident: int


class Searcher:
    """Answers queries over one snapshot."""

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
        self._neighbours = CandidateLists(snapshot, generation, replica)
        self._scorer = Scorer(snapshot, self.scoring, self._multiply, scan_chunks)

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
        allowed = self.allowed(where, without)
        is_exact = exact or self.is_exhaustive(allowed)
        ranking = self._ranked(prepared, allowed, offset + k, is_exact=is_exact)
        is_complete = not self.snapshot.width or bool(self.snapshot.has_vectors[allowed].all())
        is_certified = is_exact and is_complete and prepared.vectors.coverage.chunks_pooled == 1
        return Result(
            query=query.document,
            query_coverage=prepared.vectors.coverage,
            hits=self._hits(query, prepared, ranking.exact.of(slice(offset, None)), offset, min_pair),
            status=Status.CERTIFIED if is_certified else Status.ESTIMATED,
            n_found=ranking.n_found,
            n_evident=ranking.n_evident,
            n_searched=int(np.count_nonzero(allowed)),
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
        prepared = self.prepare(query)
        allowed = self.allowed(where, without)
        is_exact = self.is_exhaustive(allowed)
        best = self._ranked(prepared, allowed, k, is_exact=is_exact).exact
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
                others = allowed & (np.arange(len(allowed)) != own)
                best = self._ranked(one, others, k, is_exact=False).exact
                yield best.positions, best.scores
            return
        positions = np.flatnonzero(allowed)
        for group in _passes(prepared, max(1, PASS_SCORES // max(1, len(positions)))):
            pools = self._scorer.pools([one for _, one in group], positions)
            for (own, one), pool in zip(group, pools, strict=True):
                best = self._scorer.best_of(one, without_positions(pool, np.array([own])), k)
                yield best.positions, best.scores

    def scores_of(self, query: Query, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of given documents, also of those with a score of 0."""
        return self._scorer.exact(self.prepare(query), positions).scores

    def best_hits(self, queries: Sequence[tuple[Query, Prepared]], allowed: NDArray[np.bool_]) -> list[Hit | None]:
        """The best hit of each of several queries, from all documents; None where none has a score above 0.

        The queries share passes over vectors and term counts.

        Args:
            queries: each with what `prepare` made of it.
            allowed: (N,) the documents that may be found.
        """
        positions = np.flatnonzero(allowed)
        best: list[Hit | None] = []
        for group in _passes(queries, max(1, PASS_SCORES // max(1, len(positions)))):
            pools = self._scorer.pools([one for _, one in group], positions)
            for (query, one), pool in zip(group, pools, strict=True):
                best += self._hits(query, one, self._scorer.best_of(one, pool, 1), 0) or (None,)
        return best

    def prepare(self, query: Query) -> Prepared:
        """Take thresholds and weights of a query from the reference, its own content left out of it."""
        return prepare(query, self.snapshot, self.scoring, self._multiply)

    def allowed(self, where: str | None, without: str | Sequence[str] | None) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter and are not to be left out."""
        allowed = np.ones(self.snapshot.n_documents, bool) if where is None else self.snapshot.matching(where)
        for doc_id in [without] if isinstance(without, str) else without or ():
            position = self.snapshot.position(doc_id)
            if position is not None:
                allowed[position] = False
        return allowed

    def is_exhaustive(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether every document is scored for every query, as containment and small indexes need."""
        return self.scoring.cover or self._neighbours.is_scanned(allowed)

    def _ranked(self, prepared: Prepared, allowed: NDArray[np.bool_], stop: int, *, is_exact: bool) -> _Ranking:
        """The first `stop` ranks."""
        scorer = self._scorer
        if is_exact:
            return _Ranking(*scorer.top(prepared, np.flatnonzero(allowed), stop))
        covered = self._neighbours.is_covered()
        fresh, *counts = scorer.top(prepared, np.flatnonzero(allowed & ~covered), stop)
        estimates = self._estimates(prepared, allowed & covered)
        ranked = known = scorer.exact(prepared, np.empty(0, np.int64))
        for n_ranks, n_candidates in (*TIERS, (len(allowed), len(allowed))):
            if len(ranked.positions) >= min(stop, len(allowed)):
                break
            n_wanted = min(stop, n_ranks) - len(ranked.positions)
            others = np.setdiff1d(estimates.positions[_best(estimates.scores, n_candidates)], known.positions)
            if len(others) <= TIERS[-1][1]:
                scored = scorer.exact(prepared, others)
            else:
                scored, *_ = scorer.top(prepared, others, n_wanted)
            if not len(known.positions):  # the first tier, which is that of every page
                counts = [sum(both) for both in zip(counts, _counts(estimates, scored), strict=True)]
            known = join_exact(known, scored)
            of_tier = join_exact(known, fresh).without(ranked.positions)
            ranked = join_exact(ranked, scorer.ranked(of_tier, n_wanted))
        return _Ranking(ranked, max(counts[0], len(ranked.positions)), counts[1])

    def _estimates(self, prepared: Prepared, allowed: NDArray[np.bool_]) -> Pool:
        """All documents that may be found, with components as far as lists and postings show them, from below."""
        vectors, limits = prepared.vectors, prepared.limits
        n = len(allowed)
        lists = self._neighbours.lists(vectors.chunks, allowed, LIST_LENGTH)
        chunks = _by_lists(lists, limits, self.scoring.power, n)
        words, pairs = self._estimated_words(prepared, allowed)
        document = np.zeros(n)
        if prepared.weights["document"]:
            nearest = self.snapshot.document_index.nearest(vectors.document, allowed, LIST_LENGTH)
            document[nearest.documents[0]] = margin(nearest.similarities[0], limits.document, self.scoring.power)
        positions = np.flatnonzero(allowed)
        components = Components(chunks, document, words, pairs).of(positions)
        return Pool(positions, components).rate(prepared, self.scoring.root)

    def _estimated_words(
        self, prepared: Prepared, allowed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two of (N,): the components of words and of pairs, by postings where there are any."""
        n = len(allowed)
        words, pairs = np.zeros(n), np.zeros(n)
        if prepared.words is None or prepared.pairs is None:
            return words, pairs
        postings = self._neighbours.postings
        if postings is None:
            positions = np.flatnonzero(allowed)
            words[positions], pairs[positions] = self._scorer.word_components(prepared, positions)
            return words, pairs
        at = np.searchsorted(self.snapshot.roster.ids, postings.ids)
        at = np.minimum(at, n - 1)
        is_there = self.snapshot.roster.ids[at] == postings.ids  # and not removed since
        of_words, of_pairs = postings.scores(prepared.words, prepared.pairs)
        words[at[is_there]], pairs[at[is_there]] = of_words[is_there], of_pairs[is_there]
        return np.minimum(words, 1), np.minimum(pairs, 1)

    def _hits(
        self, query: Query, prepared: Prepared, exact: Exact, offset: int, min_pair: float = 0.0
    ) -> tuple[Hit, ...]:
        positions = exact.positions
        if not len(positions):
            return ()
        documents = self.snapshot.documents(positions)
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
            [document for document, _ in documents],
            [self.snapshot.spans(position) for position in positions.tolist()],
            scored,
        )
        are_encoded = self.snapshot.has_vectors[positions].tolist()
        shown = zip(exact.scores.tolist(), documents, breakdowns, are_encoded, strict=True)
        return tuple(
            Hit(rank, score, document, breakdown, coverage, has_vectors)
            for rank, (score, (document, coverage), breakdown, has_vectors) in enumerate(shown, start=offset + 1)
        )


def _best(scores: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Places of the n best; of equal ones the first."""
    if n >= len(scores):
        return np.arange(len(scores))
    last = -np.partition(-scores, n - 1)[n - 1]
    above = np.flatnonzero(scores > last)
    return np.concatenate([above, np.flatnonzero(scores == last)[: n - len(above)]])


def _counts(estimates: Pool, scored: Exact) -> tuple[int, int]:
    """Documents with a score above 0, and those with a chunk above its threshold, by estimates or exactly."""
    is_other = ~np.isin(estimates.positions, scored.positions)
    rough, exact = estimates.components.chunks, scored.components.chunks
    n_found = np.count_nonzero(estimates.scores[is_other]) + np.count_nonzero(scored.scores)
    return int(n_found), int(np.count_nonzero(rough[is_other]) + np.count_nonzero(exact))


def _by_lists(lists: RankedLists, limits: Thresholds, power: float, n: int) -> NDArray[np.float64]:
    """The chunk component (N,) as far as lists show it."""
    shares = limits.weights[:, None] * margin(lists.similarities, limits.chunks[:, None], power)
    counts = (lists.documents >= 0) & (shares > 0)
    return np.bincount(lists.documents[counts], shares[counts], minlength=n).astype(np.float64)


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
