"""Ranking the documents of one index: candidates -> exact scores -> ranks. Prepares no query, shows no parts.

The score of a document depends on query, document and reference alone (`engine.scoring.evidence`).
In a small index, with a strict filter or with `exact`, every document is scored. Else lists of an
approximate index and postings of words choose candidates, which are scored exactly.

Candidates are ranked in tiers, so that a rank does not depend on the number of hits requested: the
first 200 ranks are filled from the 400 best candidates, the ranks up to 1,000 from the 2,000 best,
and so on; beyond the last tier all documents are scored. Later tiers do not change the ranks of earlier ones.

Letters in shapes: N documents of the index, R scored documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.scoring.evidence import Components, Scoring, Thresholds, margin
from engine.scoring.lists import RankedLists
from engine.search.candidates import CandidateLists
from engine.search.partition import Ranked, Ranks, Selection, Shown, Survey
from engine.search.query import Prepared
from engine.search.scorer import Exact, Pool, Scan, Scorer, join_exact, without_positions
from engine.store.partitioned import Snapshot
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions

if TYPE_CHECKING:
    from engine.store.ann import OpenReplica

# Ranks, and the candidates they are filled from.
TIERS = ((200, 400), (1_000, 2_000), (5_000, 10_000))
LIST_LENGTH = 60  # documents in the list of each query chunk, which become candidates


class LocalPartition:
    """Ranks and shows the documents of one snapshot; see `engine.search.partition.Partition`."""

    def __init__(
        self,
        snapshot: IndexSnapshot,
        scoring: Scoring,
        generation: OpenGeneration | None = None,
        scan_chunks: int | None = None,
        replica: OpenReplica | None = None,
        scan: Scan | None = None,
    ) -> None:
        """Search a snapshot."""
        self.snapshot = snapshot
        self.scoring = scoring
        self._neighbours = CandidateLists(snapshot, generation, replica)
        self._scan = scan
        self._scorer = Scorer(snapshot, scoring, scan_chunks, scan)
        self._matching: tuple[str | None, NDArray[np.bool_] | None] = (None, None)  # the last filter and its mask

    @property
    def n_documents(self) -> int:
        """N."""
        return self.snapshot.n_documents

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """The best documents of the snapshot."""
        allowed = self._allowed(selection)
        is_exact = selection.exact or self._is_exhaustive(allowed)
        exact, n_found, n_evident = self._ranked(prepared, allowed, n_most, is_exact=is_exact)
        return Ranks(
            self._named(exact),
            n_found,
            n_evident,
            n_searched=int(np.count_nonzero(allowed)),
            is_exact=is_exact,
            is_complete=self._is_complete(allowed),
        )

    def survey(self, selection: Selection) -> Survey:
        """The documents that pass a selection."""
        allowed = self._allowed(selection)
        is_exhaustive = selection.exact or self._is_exhaustive(allowed)
        return Survey(np.flatnonzero(allowed), is_exhaustive, self._is_complete(allowed))

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """The best of all documents for several queries; see `Partition.tops`."""
        pools = self._scorer.pools([one for _, one in queries], np.flatnonzero(self._allowed(selection)))
        return [
            self._named(self._scorer.best_of(one, without_positions(pool, np.array([own])), n_most))
            for (own, one), pool in zip(queries, pools, strict=True)
        ]

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """The scores of given documents, also of those with a score of 0."""
        return self._scorer.exact(prepared, positions)

    def _allowed(self, selection: Selection) -> NDArray[np.bool_]:
        """(N,) True for the documents that pass a selection; the last filter is cached, since many queries share it."""
        where, matching = self._matching
        if where != selection.where or matching is None:
            matching = allowed_documents(self.snapshot, selection.where, ())
            self._matching = selection.where, matching
        return without_documents(self.snapshot, matching, selection.without)

    def _is_exhaustive(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether every document is scored; always for containment, as lists and postings choose similar documents."""
        return self.scoring.cover or self._neighbours.is_scanned(allowed)

    def _is_complete(self, allowed: NDArray[np.bool_]) -> bool:
        return not self.snapshot.width or bool(self.snapshot.has_vectors[allowed].all())

    def show(self, positions: Positions) -> list[Shown]:
        """Documents as hits show them; their texts are read when they are needed."""
        documents = self.snapshot.documents(positions)
        are_encoded = self.snapshot.has_vectors[positions].tolist()
        return [
            Shown(document, coverage, self.snapshot.spans(position), has_vectors, self.snapshot.section_bits(position))
            for (document, coverage), position, has_vectors in zip(
                documents, positions.tolist(), are_encoded, strict=True
            )
        ]

    def _named(self, exact: Exact) -> Ranked:
        return Ranked(exact, tuple(self.snapshot.doc_ids_of(exact.positions)))

    def _ranked(
        self, prepared: Prepared, allowed: NDArray[np.bool_], stop: int, *, is_exact: bool
    ) -> tuple[Exact, int, int]:
        """The first `stop` ranks, and the counts of `Scorer.top`."""
        scorer = self._scorer
        if is_exact:
            return scorer.top(prepared, np.flatnonzero(allowed), stop)
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
        return ranked, max(counts[0], len(ranked.positions)), counts[1]

    def _estimates(self, prepared: Prepared, allowed: NDArray[np.bool_]) -> Pool:
        """All documents that may be found, with lower bounds of their components from lists and postings."""
        vectors, limits = prepared.vectors, prepared.limits
        positions = np.flatnonzero(allowed)
        if self._scan is None:
            lists = self._neighbours.lists(vectors.chunks, allowed, LIST_LENGTH)
            chunks = _by_lists(lists, limits, self.scoring.power, len(allowed))[positions]
        else:
            chunks = self._scorer.chunk_components([prepared], positions)[0]
        words, pairs = self._estimated_words(prepared, allowed)
        components = Components(chunks, words[positions], pairs[positions])
        return Pool(positions, components).rate(prepared, self.scoring.root)

    def _estimated_words(
        self, prepared: Prepared, allowed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The components of words and of pairs, (N,) each, from postings if there are any."""
        n = len(allowed)
        words, pairs = np.zeros(n), np.zeros(n)
        if prepared.words is None or prepared.pairs is None:
            return words, pairs
        postings = self._neighbours.postings
        if postings is None:
            positions = np.flatnonzero(allowed)
            words[positions], pairs[positions] = self._scorer.word_components(prepared, positions)
            return words, pairs
        at = np.searchsorted(self.snapshot.locations.ids, postings.ids)
        at = np.minimum(at, n - 1)
        is_there = self.snapshot.locations.ids[at] == postings.ids  # False for documents that were removed
        of_words, of_pairs = postings.scores(prepared.words, prepared.pairs)
        words[at[is_there]], pairs[at[is_there]] = of_words[is_there], of_pairs[is_there]
        return np.minimum(words, 1), np.minimum(pairs, 1)


def allowed_documents(snapshot: Snapshot, where: str | None, without: Sequence[str]) -> NDArray[np.bool_]:
    """(N,) True for the documents that pass a metadata filter and are not to be left out."""
    allowed = np.ones(snapshot.n_documents, bool) if where is None else snapshot.matching(where)
    return without_documents(snapshot, allowed, without)


def without_documents(snapshot: Snapshot, allowed: NDArray[np.bool_], without: Sequence[str]) -> NDArray[np.bool_]:
    """A copy of a mask (N,) that leaves out documents by doc_id; unknown doc_ids are ignored."""
    left = allowed.copy()
    for doc_id in without:
        position = snapshot.position(doc_id)
        if position is not None:
            left[position] = False
    return left


def _best(scores: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Places of the n best scores; of equal scores the first."""
    if n >= len(scores):
        return np.arange(len(scores))
    last = -np.partition(-scores, n - 1)[n - 1]
    above = np.flatnonzero(scores > last)
    return np.concatenate([above, np.flatnonzero(scores == last)[: n - len(above)]])


def _counts(estimates: Pool, scored: Exact) -> tuple[int, int]:
    """The numbers of documents with a score above 0 and with a chunk above its threshold, exact where scored."""
    is_other = ~np.isin(estimates.positions, scored.positions)
    rough, exact = estimates.components.chunks, scored.components.chunks
    n_found = np.count_nonzero(estimates.scores[is_other]) + np.count_nonzero(scored.scores)
    return int(n_found), int(np.count_nonzero(rough[is_other]) + np.count_nonzero(exact))


def _by_lists(lists: RankedLists, limits: Thresholds, power: float, n: int) -> NDArray[np.float64]:
    """A lower bound of the chunk component (N,), from lists."""
    shares = limits.weights[:, None] * margin(lists.similarities, limits.chunks[:, None], power)
    counts = (lists.documents >= 0) & (shares > 0)
    return np.bincount(lists.documents[counts], shares[counts], minlength=n).astype(np.float64)
