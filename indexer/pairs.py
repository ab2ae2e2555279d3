"""Finds the pairs of an index by blocks of documents; a killed run continues after its last block.

There are two passes. The first ranks the index against each document and keeps the best targets. The second scores
the missing directions: those from b to a, where b is among the best of a, but a is not among the best of b. So each
pair has both scores.

Letters in shapes: N documents of the index, E directed edges from a query to a target.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from engine.errors import QueryError
from engine.index import Index
from engine.on_demand import BY_WORDS
from engine.pairs import DocumentPair
from engine.result import index_state
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.partition import Selection
from engine.search.query import Query
from engine.search.request import Mode
from engine.search.searcher import Searcher
from engine.store.lookup import check_fields
from engine.store.snapshot import Positions
from engine.views import Pairs
from indexer.pair_edges import Edges, Journal, best_edges, given_edges, join_edges, missing_reverse

# Called with the name of the pass ("ranked", "reversed"), the number of finished documents, and their total.
Progress: TypeAlias = Callable[[str, int, int], None]

BLOCK_DOCUMENTS = 256  # documents of a block, the most work that a kill can lose
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
    journal: Path | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> Pairs:
    """Find the pairs of an index.

    Documents are not encoded: if one has no vectors, all pairs are scored by words alone.

    Args:
        journal: file for the finished blocks; deleted at the end. Without a journal, a run cannot be continued.

    Raises:
        QueryError: the filter cannot be used, or the journal is of another index or other settings.
    """
    started = time.perf_counter()
    run = _Run(index, settings, progress or _silent)
    if run.lacks_vectors:
        log(f"some documents have no vectors: pairs are scored by words alone; add them: longmatch index {run.folder}")
    if journal is None:
        edges = run.edges(None)
    else:
        with Journal(journal, run.description) as kept:
            if kept.n_kept:
                log(f"continuing after {kept.n_kept:,} blocks of {journal}")
            edges = run.edges(kept)
    pairs = run.pairs(edges)
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


class _Run:
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
        self._searcher: Searcher = index.searcher(_scoring(settings.mode, vectors=self.vectors))
        self._selection = Selection(settings.where)
        self._survey = self._searcher.survey(self._selection)
        self.positions = self._survey.positions

    @property
    def is_certified(self) -> bool:
        """Whether no candidates were chosen, and no vectors are missing."""
        return self._survey.is_exhaustive and not self.lacks_vectors

    @property
    def description(self) -> dict[str, Any]:
        """What the blocks depend on."""
        state = index_state(self._index.snapshot)
        return {
            "index": state.fingerprint,
            "generation": state.generation,
            "vectors": self.vectors,
            "block": BLOCK_DOCUMENTS,
            **asdict(self._settings),
        }

    def edges(self, kept: Journal | None) -> Edges:
        """Both directions of all pairs."""
        best = self._blocks("ranked", self.positions, self._best, kept)
        wanted = missing_reverse(best, self._index.n_documents)
        sources = np.array([source for source, _ in wanted], np.int64)
        targets = dict(wanted)

        def reverse(block: Positions) -> Edges:
            asked = [(source, targets[source]) for source in block.tolist()]
            return given_edges(self._searcher, self._queries, asked)

        return join_edges([best, self._blocks("reversed", sources, reverse, kept)])

    def _best(self, block: Positions) -> Edges:
        top, least = self._settings.top, self._settings.least
        return best_edges(self._searcher, self._queries, block, self._selection, top=top, least=least)

    def _queries(self, positions: Positions) -> Sequence[Query]:
        return self._index.stored_queries(positions, vectors=self.vectors)

    def _blocks(
        self, what: str, positions: Positions, find: Callable[[Positions], Edges], kept: Journal | None
    ) -> Edges:
        found = []
        for number, first in enumerate(range(0, len(positions), BLOCK_DOCUMENTS)):
            block = positions[first : first + BLOCK_DOCUMENTS]
            edges = None if kept is None else kept.block(what, number)
            if edges is None:
                edges = find(block)
                if kept is not None:
                    kept.add(what, number, edges)
            found.append(edges)
            self._progress(what, first + len(block), len(positions))
        return join_edges(found)

    def pairs(self, edges: Edges) -> list[DocumentPair]:
        """The pairs of edges, of which each is there in both directions."""
        scores = {
            (query, target): score
            for query, target, score in zip(
                edges.queries.tolist(), edges.targets.tolist(), edges.scores.tolist(), strict=True
            )
        }
        involved = np.unique(edges.queries)
        listed = self._index.snapshot.titles()
        names, titles = ({one: listed[one][at] for one in involved.tolist()} for at in (0, 1))
        return [
            DocumentPair(names[one], names[other], score, scores[other, one], titles[one], titles[other])
            for (one, other), score in scores.items()
            if names[one] < names[other]
        ]


def _scoring(mode: str, *, vectors: bool) -> Scoring:
    if mode == Mode.CONTAINMENT:
        return CONTAINMENT if vectors else replace(CONTAINMENT, chunk_weight=0)
    return Scoring() if vectors else BY_WORDS


def _silent(_what: str, _n_done: int, _n_documents: int) -> None:
    pass
