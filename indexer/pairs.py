"""Finds the pairs of an index by blocks of documents.

There are two passes. The first ranks the index against each document and keeps the best targets. The second scores
the missing directions: those from b to a, where b is among the best of a, but a is not among the best of b. So each
pair has both scores.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import QueryError, command_line
from engine.index import Index
from engine.result import DocumentPair, Pairs
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.partition import Selection
from engine.search.query import Query, stored_queries
from engine.search.request import Mode
from engine.store.partitioned import check_fields
from engine.store.snapshot import Positions

# Called with the name of the pass ("ranked", "reversed"), the number of finished documents, and their total.
Progress: TypeAlias = Callable[[str, int, int], None]

BLOCK_DOCUMENTS = 256  # documents that share passes over the index
LEAST = 0.5
TOP = 10


@dataclass(frozen=True, slots=True)
class PairSettings:
    """Which pairs are wanted."""

    least: float = LEAST  # score of a pair
    top: int = TOP  # targets of each document that can make a pair
    mode: str = Mode.SIMILAR
    where: str | None = None  # metadata filter, for both documents

    def __post_init__(self) -> None:
        if not 0 < self.least <= 1:
            raise QueryError(f"least is {self.least:g}; a pair needs a score above 0 and at most 1")
        if self.top < 1:
            raise QueryError(f"top is {self.top}; it must be at least 1")
        if self.mode not in (Mode.SIMILAR, Mode.CONTAINMENT):
            raise QueryError(f"mode is {self.mode!r:.40}; it must be one of: {Mode.SIMILAR}, {Mode.CONTAINMENT}")


def find_pairs(
    index: Index,
    settings: PairSettings,
    *,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> Pairs:
    """Find the pairs of an index.

    Documents are not encoded: if one has no vectors, all pairs are scored by words alone.
    """
    started = time.perf_counter()
    run = _Pass(index, settings, progress or (lambda _what, _n_done, _n_documents: None))
    if run.lacks_vectors:
        add = command_line("index", run.folder)
        log(f"some documents have no vectors: pairs are scored by words alone; add them: {add}")
    pairs = run.pairs(run.edges())
    return Pairs(
        pairs=tuple(sorted(pairs, key=lambda pair: (-pair.score, pair.first, pair.second))),
        n_documents=len(run.positions),
        least=settings.least,
        top=settings.top,
        mode=str(settings.mode),
        is_certified=run.is_certified,
        by_words=not run.vectors,
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class Edges:
    """Scores of targets for queries, all documents of one index."""

    queries: Positions  # (E,)
    targets: Positions  # (E,)
    scores: NDArray[np.float64]  # (E,)


class _Pass:
    """One run over one snapshot."""

    def __init__(self, index: Index, settings: PairSettings, progress: Progress) -> None:
        snapshot = index.snapshot
        if settings.where is not None:
            check_fields(snapshot, settings.where)
        is_complete = snapshot.is_complete
        self.folder = snapshot.folder
        self.vectors = snapshot.width > 0 and is_complete
        self.lacks_vectors = snapshot.width > 0 and not is_complete
        self._index = index
        self._settings = settings
        self._progress = progress
        scoring = CONTAINMENT if settings.mode == Mode.CONTAINMENT else Scoring()
        self._searcher = index.searcher(scoring if self.vectors else replace(scoring, chunk_weight=0))
        self._selection = Selection(settings.where)
        self._survey = self._searcher.survey(self._selection)
        self.positions = self._survey.positions

    @property
    def is_certified(self) -> bool:
        """Whether no candidates were chosen, and no vectors are missing."""
        return self._survey.is_exhaustive and not self.lacks_vectors

    def edges(self) -> Edges:
        """Both directions of all pairs."""
        best = self._blocks("ranked", self.positions, self.best)
        targets = missing_reverse(best, self._index.n_documents)

        def reverse(block: Positions) -> Edges:
            parts = []
            for source, query in zip(block.tolist(), self._queries(block), strict=True):
                wanted = targets[source]
                parts.append(Edges(np.full(len(wanted), source), wanted, self._searcher.scores_of(query, wanted)))
            return join_edges(parts)

        return join_edges([best, self._blocks("reversed", np.array(list(targets), np.int64), reverse)])

    def best(self, sources: Positions) -> Edges:
        """The best targets of some documents, without the documents themselves; queries share passes over the index."""
        queries = list(zip(sources.tolist(), self._queries(sources), strict=True))
        best = []
        tops = self._searcher.tops(queries, self._selection, k=self._settings.top)
        for (source, _), (targets, scores) in zip(queries, tops, strict=True):
            is_pair = scores >= self._settings.least
            best.append(Edges(np.full(int(is_pair.sum()), source), targets[is_pair], scores[is_pair]))
        return join_edges(best)

    def _queries(self, positions: Positions) -> Sequence[Query]:
        return stored_queries(self._index.snapshot, positions, vectors=self.vectors)

    def _blocks(self, what: str, positions: Positions, find: Callable[[Positions], Edges]) -> Edges:
        edges = []
        for first in range(0, len(positions), BLOCK_DOCUMENTS):
            block = positions[first : first + BLOCK_DOCUMENTS]
            edges.append(find(block))
            self._progress(what, first + len(block), len(positions))
        return join_edges(edges)

    def pairs(self, edges: Edges) -> list[DocumentPair]:
        """The pairs of edges, of which each is there in both directions."""
        ends = zip(edges.queries.tolist(), edges.targets.tolist(), strict=True)
        scores = dict(zip(ends, edges.scores.tolist(), strict=True))
        involved = np.unique(edges.queries)
        listed = self._index.snapshot.titles()
        names, titles = ({one: listed[one][at] for one in involved.tolist()} for at in (0, 1))
        return [
            DocumentPair(names[one], names[other], score, scores[other, one], titles[one], titles[other])
            for (one, other), score in scores.items()
            if names[one] < names[other]
        ]


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Concatenate edges."""
    if not parts:
        return Edges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
    return Edges(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("queries", "targets", "scores"))
    )


def missing_reverse(edges: Edges, n_documents: int) -> dict[int, Positions]:
    """The missing reverses of edges: the targets of documents to search with."""
    there = edges.queries * n_documents + edges.targets
    turned = edges.targets * n_documents + edges.queries
    left = np.setdiff1d(turned, there)
    sources, counts = np.unique(left // n_documents, return_counts=True)
    ends = np.cumsum(counts)
    targets = left % n_documents
    return dict(zip(sources.tolist(), np.split(targets, ends[:-1]), strict=False))
