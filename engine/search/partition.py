"""The interface of search to a store, which ranks the documents of one partition and shows hits; and the local store.

A search takes two rounds. In the first, each partition ranks its own documents for a query that was prepared once,
from the reference that all share. In the second, the partitions that own the hits show them. Searches with many
queries use other rounds: `survey` lists the documents, `tops` ranks them for several queries, `exact` scores given
documents. An index that is not partitioned is one partition.

All partitions use one reference, so their scores are comparable. Partitions hold different documents, and
their rankings do not depend on the number of documents requested; neither does the merged ranking.

The score of a document depends on query, document and reference alone (`engine.scoring.evidence`).
In a small index, with a strict filter or with `exact`, every document is scored. Else lists of an
approximate index and postings of words choose candidates, which are scored exactly.

Candidates are ranked in tiers, so that a rank does not depend on the number of hits requested: the
first 200 ranks are filled from the 400 best candidates, the ranks up to 1,000 from the 2,000 best,
and so on; beyond the last tier all documents are scored. Later tiers do not change the ranks of earlier ones.

Letters in shapes: R documents, N documents of the index.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.breakdown import Prepared
from engine.scoring.evidence import Components, Scoring, Thresholds, margins
from engine.search.candidates import CandidateLists, RankedLists
from engine.search.request import Request
from engine.search.scorer import Exact, Pool, Scan, Scorer, join_exact
from engine.store.partitioned import Snapshot
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions
from engine.text.document import Document
from engine.text.segmentation import Coverage

if TYPE_CHECKING:
    from engine.store.ann import OpenReplica


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a search may find, and whether it scores all of them."""

    where: str | None = None  # metadata filter, see `engine.store.where`
    without: tuple[str, ...] = ()  # doc_ids that are left out; unknown ones are ignored
    exact: bool = False  # score every document, even if there is an approximate index

    @classmethod
    def of(cls, request: Request) -> Selection:
        """The documents that a request searches."""
        return cls(request.filter, request.without, request.exact)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Documents in their order, with their doc_ids, which order equal scores."""

    exact: Exact  # R documents by falling score, equal ones by doc_id, within each tier of candidates
    doc_ids: tuple[str, ...]  # (R,)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The best documents of one partition, and counts of its documents."""

    best: Ranked
    n_found: int  # documents with a score above 0
    n_evident: int  # documents with a chunk above its threshold
    n_searched: int  # documents that pass the selection
    is_exact: bool  # every document that passes the selection was scored
    is_complete: bool  # every document that passes the selection has vectors, or the index is one of words alone


@dataclass(frozen=True, slots=True)
class Survey:
    """The documents of one partition that a search may find."""

    positions: Positions  # (R,) rising
    is_exhaustive: bool  # a search scores every one of them
    is_complete: bool  # every one of them has vectors, or the index is one of words alone


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as a hit shows it."""

    document: Document
    coverage: Coverage
    spans: NDArray[np.int32]  # (C, 4) section, start, stop and tokens of its chunks
    has_vectors: bool
    bits: NDArray[np.uint8]  # (A,) kinds of its sections, see `engine.text.section_kinds`


class Partition(Protocol):
    """Documents that are searched together with those of other partitions, by one scoring."""

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """Rank the documents of the partition.

        The first n documents do not depend on `n_most`.

        Raises:
            QueryError: the filter does not parse.
        """

    def survey(self, selection: Selection) -> Survey:
        """The documents that pass a selection; raises the errors of `rank`."""

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """Rank all documents for each of several queries, in one pass over them; raises the errors of `rank`.

        Args:
            queries: each with the position that it leaves out, or a position outside of the partition for none.
        """

    def exact(self, prepared: Prepared, positions: Positions) -> Exact:
        """The scores of documents at some positions (R,), in that order, also of those with a score of 0."""

    def show(self, positions: Positions) -> Sequence[Shown]:
        """The documents at some positions (R,), in that order."""


class Placement(Protocol):
    """Where the partitions of an index are searched, other than in this process."""

    def partitions(self, snapshots: Sequence[IndexSnapshot], scoring: Scoring) -> Sequence[Partition]:
        """The partitions of an index."""


def merged(parts: Sequence[Ranked], bases: NDArray[np.int64], n_most: int) -> Ranked:
    """The ranking of all partitions: by falling score, equal ones by doc_id.

    Args:
        bases: the position of the first document of each partition among those of all.

    Returns:
        R documents, at most `n_most`, at their positions among those of all.
    """
    moved = [
        replace(part.exact, positions=part.exact.positions + base)
        for part, base in zip(parts, bases.tolist(), strict=True)
    ]
    doc_ids = [doc_id for part in parts for doc_id in part.doc_ids]
    if len(moved) == 1:
        return Ranked(moved[0].of(slice(n_most)), tuple(doc_ids[:n_most]))
    rows = iter(range(len(doc_ids)))
    lists = [[*zip((-part.exact.scores).tolist(), part.doc_ids, rows, strict=False)] for part in parts]
    order = [row for _, _, row in islice(heapq.merge(*lists), n_most)]
    return Ranked(reduce(join_exact, moved).of(np.array(order, np.int64)), tuple(doc_ids[row] for row in order))


def merged_ranks(parts: Sequence[Ranks], bases: NDArray[np.int64], n_most: int) -> Ranks:
    """The rankings of all partitions as that of one partition; the arguments are those of `merged`."""
    return Ranks(
        merged([part.best for part in parts], bases, n_most),
        n_found=sum(part.n_found for part in parts),
        n_evident=sum(part.n_evident for part in parts),
        n_searched=sum(part.n_searched for part in parts),
        is_exact=all(part.is_exact for part in parts),
        is_complete=all(part.is_complete for part in parts),
    )


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
        self.snapshot = snapshot
        self.scoring = scoring
        self._neighbours = CandidateLists(snapshot, generation, replica)
        self._scan = scan
        self._scorer = Scorer(snapshot, scoring, scan_chunks, scan)
        self._matching: tuple[str | None, NDArray[np.bool_] | None] = (None, None)  # the last filter and its mask

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
        pools = self._scorer.pools([query for _, query in queries], np.flatnonzero(self._allowed(selection)))
        return [
            self._named(self._scorer.best_of(query, pool.of(pool.positions != own), n_most))
            for (own, query), pool in zip(queries, pools, strict=True)
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
        ranked = scorer.exact(prepared, np.empty(0, np.int64))
        for tier, (n_ranks, n_candidates) in enumerate((*TIERS, (len(allowed), len(allowed)))):
            if len(ranked.positions) >= min(stop, len(allowed)):
                break
            n_wanted = min(stop, n_ranks) - len(ranked.positions)
            candidates = estimates.positions[_best(estimates.scores, n_candidates)]
            scored, *of_scored = scorer.top(prepared, np.setdiff1d(candidates, ranked.positions), n_wanted)
            if not tier:  # that of every page
                rest = estimates.of(~np.isin(estimates.positions, candidates))
                of_rest = np.count_nonzero(rest.scores), np.count_nonzero(rest.components.chunks)
                counts = [sum(all_of) for all_of in zip(counts, of_scored, map(int, of_rest), strict=True)]
            of_tier = join_exact(scored, fresh.without(ranked.positions))
            ranked = join_exact(ranked, scorer.ranked(of_tier, n_wanted))
        return ranked, max(counts[0], len(ranked.positions)), counts[1]

    def _estimates(self, prepared: Prepared, allowed: NDArray[np.bool_]) -> Pool:
        """All documents that may be found, with lower bounds of their components from lists and postings."""
        vectors, limits = prepared.vectors, prepared.limits
        positions = np.flatnonzero(allowed)
        if self._scan is None:
            lists = self._neighbours.lists(vectors.chunks, allowed, LIST_LENGTH)
            chunks = self._by_lists(lists, vectors.chunks, limits, len(allowed))[positions]
        else:
            chunks = self._scorer.chunk_components([prepared], positions)[0]
        words, pairs = self._estimated_words(prepared, allowed)
        components = Components(chunks, words[positions], pairs[positions])
        return Pool(positions, self._scorer.combined(prepared, components), components)

    def _by_lists(self, lists: RankedLists, chunks: Vectors, limits: Thresholds, n: int) -> NDArray[np.float64]:
        """A lower bound of the chunk component (N,), from lists."""
        rows, columns = np.nonzero(lists.documents >= 0)
        documents = lists.documents[rows, columns]
        listed, at = np.unique(documents, return_inverse=True)
        openings = np.zeros_like(lists.similarities)
        openings[rows, columns] = (chunks @ self.snapshot.openings(listed).T)[rows, at]
        shares = limits.weights[:, None] * margins(lists.similarities, openings, limits, self.scoring)
        return np.bincount(documents, shares[rows, columns], minlength=n).astype(np.float64)

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
