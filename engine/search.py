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

import numpy as np
from numpy.typing import NDArray

from engine.acceleration import Acceleration
from engine.encoders.encoder import Vectors
from engine.errors import QueryError
from engine.neighbours import Neighbours
from engine.pool import Pool, chosen, counts_of, joined, without_positions
from engine.query import Prepared, Query, prepare
from engine.result import Hit, Result, Status
from engine.scoring.breakdown import Scored, break_down
from engine.scoring.evidence import (
    Components,
    Scoring,
    Thresholds,
    chunk_component,
    combine,
    margin,
)
from engine.scoring.lists import RankedLists
from engine.scoring.similarity import Matches, best_chunks, best_matches, cosines, no_matches, products
from engine.store.snapshot import OpenGeneration, Positions, Snapshot
from engine.words.likelihood import scores

# Ranks, and the candidates they are filled from.
TIERS = ((200, 400), (1_000, 2_000), (5_000, 10_000))
LIST_LENGTH = 60  # documents that each query chunk names as candidates
SCAN_BLOCK_CHUNKS = 32_768  # target chunks gathered at once
SCAN_BLOCK_DOCUMENTS = 2_048  # target documents whose term counts are gathered at once
PASS_CHUNKS = 4_096  # query chunks that are compared with the index in one pass over it
_SAME = 2e-5  # scores from products of different shapes differ by less


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Documents in their order, and how many have any part in common with the query."""

    positions: Positions  # (R,) the ranks that were wanted
    n_found: int
    n_evident: int


@dataclass(frozen=True, slots=True)
class _Exact:
    """Scores to the last digit, and what they are made of."""

    scores: NDArray[np.float64]  # (R,)
    components: Components
    matches: Matches
    cosines: Vectors | None  # (R,) of the document vectors; None where they have no weight


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
            scan_chunks: target chunks in memory at one time, `SCAN_BLOCK_CHUNKS` by default.
            acceleration: of a GPU; none by default.
        """
        self.snapshot = snapshot
        self.scoring = scoring or Scoring()
        replica = None if acceleration is None else acceleration.replica
        self._multiply = products if acceleration is None else acceleration.multiply
        self._neighbours = Neighbours(snapshot, generation, replica)
        self._scan_chunks = scan_chunks

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

        A query of very many chunks is searched with fewer, pooled ones, see `engine.long_query`;
        the coverage of the result says so, and such a result is never certified.

        Args:
            query: the document to search with.
            k: hits wanted.
            offset: hits to leave out first, for pages.
            where: metadata filter, see `engine.store.where`.
            without: doc_id of a document to leave out.
            exact: score every document, whatever index there is.

        Raises:
            QueryError: k or offset out of range, or the filter does not parse.
        """
        if k < 1 or offset < 0:
            raise QueryError(f"k is {k} and offset {offset}; k must be at least 1 and offset at least 0")
        started = time.perf_counter()
        prepared = self.prepare(query)
        allowed = self.allowed(where, without)
        is_exact = exact or self._neighbours.is_scanned(allowed)
        ranking = self._ranked(prepared, allowed, offset + k, is_exact=is_exact)
        is_complete = not self.snapshot.width or bool(self.snapshot.has_vectors[allowed].all())
        is_certified = is_exact and is_complete and prepared.vectors.coverage.chunks_pooled == 1
        return Result(
            query=query.document,
            query_coverage=prepared.vectors.coverage,
            hits=self._hits(query, prepared, ranking.positions[offset:], offset),
            status=Status.CERTIFIED if is_certified else Status.ESTIMATED,
            n_found=ranking.n_found,
            n_evident=ranking.n_evident,
            n_searched=int(np.count_nonzero(allowed)),
            seconds=time.perf_counter() - started,
            language=self.snapshot.language,
            reference=self.snapshot.reference.version,
        )

    def rank(
        self, query: Query, *, k: int, where: str | None = None, without: str | None = None
    ) -> tuple[Positions, NDArray[np.float64]]:
        """Positions and scores of the best documents, those of `search`, without a breakdown; no text is read.

        Args:
            query: the document to search with.
            k: how many at most.
            where: metadata filter, see `engine.store.where`.
            without: doc_id of a document to leave out.

        Returns:
            Two of (R,), R at most k: rows of the snapshot, and scores above 0, best first.

        Raises:
            QueryError: k is below 1, or the filter does not parse.
        """
        if k < 1:
            raise QueryError(f"k is {k}; it must be at least 1")
        prepared = self.prepare(query)
        allowed = self.allowed(where, without)
        is_exact = self._neighbours.is_scanned(allowed)
        positions = self._ranked(prepared, allowed, k, is_exact=is_exact).positions
        if not len(positions):
            return positions, np.zeros(0)
        return positions, self._exact(prepared, self._score(prepared, positions)).scores

    def exact_top_positions(self, queries: Sequence[tuple[str, Query]], *, k: int) -> list[Positions]:
        """The best documents that `search` with `exact` finds for indexed documents, each itself left out.

        Many queries share one pass over the vectors of the index, `PASS_CHUNKS` of their chunks at a time.

        Args:
            queries: doc_ids, and the queries.
            k: how many at most for each.
        """
        prepared = [(doc_id, self.prepare(query)) for doc_id, query in queries]
        everything = np.arange(self.snapshot.n_documents)
        best: list[Positions] = []
        for group in _passes(prepared):
            pools = self._pools([one for _, one in group], everything)
            for (doc_id, one), pool in zip(group, pools, strict=True):
                allowed = self.allowed(None, doc_id)
                best.append(self._top(one, without_positions(pool, np.flatnonzero(~allowed)), k))
        return best

    def prepare(self, query: Query) -> Prepared:
        """Take thresholds and weights of a query from the reference, its own content left out of it."""
        return prepare(query, self.snapshot, self.scoring, self._multiply)

    def allowed(self, where: str | None, without: str | None) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a metadata filter and are not the one to leave out."""
        allowed = np.ones(self.snapshot.n_documents, bool) if where is None else self.snapshot.matching(where)
        position = self.snapshot.position(without) if without is not None else None
        if position is not None:
            allowed[position] = False
        return allowed

    def _ranked(self, prepared: Prepared, allowed: NDArray[np.bool_], stop: int, *, is_exact: bool) -> _Ranking:
        """The first `stop` ranks."""
        if is_exact:
            pool = self._score(prepared, np.flatnonzero(allowed))
            return _Ranking(self._top(prepared, pool, stop), *counts_of(pool))
        covered = self._neighbours.is_covered()
        fresh = self._score(prepared, np.flatnonzero(allowed & ~covered))
        estimates = self._estimates(prepared, allowed & covered)
        counts = [sum(both) for both in zip(counts_of(fresh), counts_of(estimates), strict=True)]
        candidates = estimates.positions[np.lexsort((estimates.positions, -estimates.scores))]
        ranked = np.empty(0, np.int64)
        for n_ranks, n_candidates in (*TIERS, (len(allowed), len(allowed))):
            if len(ranked) >= min(stop, len(allowed)):
                break
            others = np.setdiff1d(candidates[:n_candidates], ranked)
            scored = self._score(prepared, others)
            pool = joined(scored, without_positions(fresh, ranked), prepared, self.scoring.root)
            ranked = np.concatenate([ranked, self._top(prepared, pool, min(stop, n_ranks) - len(ranked))])
        return _Ranking(ranked, *counts)

    def _estimates(self, prepared: Prepared, allowed: NDArray[np.bool_]) -> Pool:
        """All documents that lists or postings name, with components that are estimated, chunks from below."""
        vectors, limits = prepared.vectors, prepared.limits
        n = len(allowed)
        lists = self._neighbours.lists(vectors.chunks, allowed, LIST_LENGTH)
        chunks = _by_lists(lists, limits, self.scoring.power, n)
        words, pairs = self._estimated_words(prepared, allowed)
        document = np.zeros(n)
        if prepared.weights["document"]:
            nearest = self.snapshot.document_index.nearest(vectors.document, allowed, LIST_LENGTH)
            document[nearest.documents[0]] = margin(nearest.similarities[0], limits.document, self.scoring.power)
        estimated = Components(chunks, document, words, pairs)
        is_named = (chunks > 0) | (document > 0) | (words > 0) | (pairs > 0)
        positions = np.flatnonzero(allowed & is_named)
        components = estimated.of(positions)
        return Pool(positions, components).rate(prepared, self.scoring.root)

    def _estimated_words(
        self, prepared: Prepared, allowed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two of (N,): the components of words and of pairs, by postings where there are any."""
        n = len(allowed)
        words, pairs = np.zeros(n), np.zeros(n)
        if prepared.words is None or prepared.pairs is None:
            return words, pairs
        generation = self._neighbours.generation
        postings = None if generation is None else generation.postings
        if postings is None:
            positions = np.flatnonzero(allowed)
            words[positions], pairs[positions] = self._word_components(prepared, positions)
            return words, pairs
        at = np.searchsorted(self.snapshot.roster.ids, postings.ids)
        at = np.minimum(at, n - 1)
        is_there = self.snapshot.roster.ids[at] == postings.ids  # and not removed since
        words[at[is_there]] = postings.words.scores(prepared.words, len(postings.ids))[is_there]
        pairs[at[is_there]] = postings.pairs.scores(prepared.pairs, len(postings.ids))[is_there]
        return np.minimum(words, 1), np.minimum(pairs, 1)

    def _score(self, prepared: Prepared, positions: Positions) -> Pool:
        """Documents with all components, computed from the stored vectors and term counts."""
        return self._pools([prepared], positions)[0]

    def _pools(self, queries: Sequence[Prepared], positions: Positions) -> list[Pool]:
        """The same for several queries, which share the pass over the vectors."""
        chunks = np.zeros((len(queries), len(positions)))
        compared = [row for row, one in enumerate(queries) if one.weights["chunks"]]
        for at in self._blocks(positions) if compared else []:
            vectors, starts = self.snapshot.chunk_vectors(positions[at])
            for row in compared:
                one = queries[row]
                best = best_chunks(one.vectors.chunks, vectors, starts, self._multiply)
                chunks[row, at] = chunk_component(best, one.limits, self.scoring)
        return [
            Pool(
                positions,
                Components(
                    chunks[row], self._document_component(one, positions), *self._word_components(one, positions)
                ),
            ).rate(one, self.scoring.root)
            for row, one in enumerate(queries)
        ]

    def _document_component(self, prepared: Prepared, positions: Positions) -> NDArray[np.float64]:
        if not prepared.weights["document"] or not len(positions):
            return np.zeros(len(positions))
        found = self.snapshot.document_index.similarities(prepared.vectors.document, positions)
        return margin(found, prepared.limits.document, self.scoring.power)

    def _word_components(
        self, prepared: Prepared, positions: Positions
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if prepared.words is None or prepared.pairs is None or not len(positions):
            return np.zeros(len(positions)), np.zeros(len(positions))
        words, pairs = [], []
        for first in range(0, len(positions), SCAN_BLOCK_DOCUMENTS):
            tables = self.snapshot.words(positions[first : first + SCAN_BLOCK_DOCUMENTS])
            words.append(scores(prepared.words, tables.words))
            pairs.append(scores(prepared.pairs, tables.pairs))
        return np.concatenate(words), np.concatenate(pairs)

    def _top(self, prepared: Prepared, pool: Pool, n_most: int) -> Positions:
        """The best documents of a pool with a score above 0: by score to float32 precision, equal ones by doc_id."""
        found = np.flatnonzero(pool.scores > 0)
        if not len(found) or n_most < 1:
            return np.empty(0, np.int64)
        # Only those that the last digits of a product could move in or out are computed to the end.
        last = -np.partition(-pool.scores[found], min(n_most, len(found)) - 1)[min(n_most, len(found)) - 1]
        near = found[pool.scores[found] >= last - _SAME]
        nearest = chosen(pool, near)
        names = np.array(self.snapshot.doc_ids_of(nearest.positions))
        order = np.lexsort((names, -self._exact(prepared, nearest).scores))
        best: Positions = nearest.positions[order]
        return best[:n_most]

    def _exact(self, prepared: Prepared, pool: Pool) -> _Exact:
        """Scores as they are shown, from similarities that are the same whatever was multiplied beside them."""
        matches, components, of_documents = self._matches(prepared, pool.positions), pool.components, None
        document = components.document
        if prepared.weights["document"]:
            of_documents = cosines(self.snapshot.document_index.rows[pool.positions], prepared.vectors.document)
            document = margin(of_documents, prepared.limits.document, self.scoring.power)
        chunks = chunk_component(matches.similarities, prepared.limits, self.scoring)
        exact = Components(chunks, document, components.words, components.pairs)
        rounded = combine(exact, prepared.weights, self.scoring.root).astype(np.float32)
        return _Exact(rounded.astype(np.float64), exact, matches, of_documents)

    def _matches(self, prepared: Prepared, positions: Positions) -> Matches:
        """The best chunks of documents for each query chunk, where they are above its threshold."""
        chunks, floor = prepared.vectors.chunks, prepared.limits.chunks
        found = no_matches(len(chunks), len(positions))
        for at in self._blocks(positions) if prepared.weights["chunks"] else []:
            vectors, starts = self.snapshot.chunk_vectors(positions[at])
            found.put(at, best_matches(chunks, vectors, starts, floor, self._multiply))
        return found

    def _blocks(self, positions: Positions) -> list[NDArray[np.int64]]:
        """Places in `positions` of the documents with vectors, in runs of about as many chunks as may be in memory."""
        places = np.flatnonzero(self.snapshot.has_vectors[positions])
        ends = np.cumsum(self.snapshot.roster.n_chunks[positions[places]])
        block = (ends - 1) // (self._scan_chunks or SCAN_BLOCK_CHUNKS)
        return np.split(places, np.flatnonzero(np.diff(block)) + 1) if len(places) else []

    def _hits(self, query: Query, prepared: Prepared, positions: Positions, offset: int) -> tuple[Hit, ...]:
        if not len(positions):
            return ()
        exact = self._exact(prepared, self._score(prepared, positions))
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


def _by_lists(lists: RankedLists, limits: Thresholds, power: float, n: int) -> NDArray[np.float64]:
    """The chunk component (N,) as far as lists show it."""
    shares = limits.weights[:, None] * margin(lists.similarities, limits.chunks[:, None], power)
    counts = (lists.documents >= 0) & (shares > 0)
    return np.bincount(lists.documents[counts], shares[counts], minlength=n).astype(np.float64)


def _passes(queries: Sequence[tuple[str, Prepared]]) -> Iterator[list[tuple[str, Prepared]]]:
    """Runs of queries of about so many chunks; a longer one is one by itself."""
    run: list[tuple[str, Prepared]] = []
    n_chunks = 0
    for query in queries:
        size = len(query[1].vectors.chunks)
        if run and n_chunks + size > PASS_CHUNKS:
            yield run
            run, n_chunks = [], 0
        run.append(query)
        n_chunks += size
    if run:
        yield run
