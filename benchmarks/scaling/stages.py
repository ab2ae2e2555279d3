"""A searcher that knows how long each stage of a search took; it answers as any other.

A stage is a method of `Searcher`, named here in the class body: one that is renamed there is an
error at import. A stage within another one counts by itself alone, and what is in none counts as
`OTHER`, so the stages sum to the whole and no part of it can be missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from engine.index import Index
from engine.result import Result
from engine.scoring.evidence import Scoring
from engine.search.query import Query
from engine.search.searcher import Searcher

THRESHOLDS, LISTS, WORDS, SCORES, HITS = "thresholds", "lists", "postings", "scores", "hits"
OTHER = "other"  # the filter
STAGES = (THRESHOLDS, LISTS, WORDS, SCORES, HITS, OTHER)

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class StageClock:
    """Gives each moment to the innermost stage that runs."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        """Begin with nothing spent.

        Args:
            now: seconds.
        """
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._now = now
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage; the one around it waits."""
        self._spend()
        self._running.append(name)
        try:
            yield
        finally:
            self._spend()
            self._running.pop()

    def _spend(self) -> None:
        now = self._now()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now


def staged(
    name: str, method: Callable[Concatenate[Searcher, Arguments], Answer]
) -> Callable[Concatenate[StagedSearcher, Arguments], Answer]:
    """The same method, as a stage of `StagedSearcher`."""

    def timed(self: StagedSearcher, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        with self.clock.stage(name):
            return method(self, *arguments, **named)

    return timed


class StagedSearcher(Searcher):
    """Takes the time of its own stages."""

    def __init__(
        self, index: Index, now: Callable[[], float] = time.perf_counter, scoring: Scoring | None = None
    ) -> None:
        """Search an open index.

        Args:
            index: stays open meanwhile.
            now: seconds.
            scoring: the constants; by default those that every search has.
        """
        super().__init__(index.snapshot, scoring)
        self._now = now
        self.clock = StageClock(now)

    prepare = staged(THRESHOLDS, Searcher.prepare)
    _ranked = staged(SCORES, Searcher._ranked)  # which calls the next one
    _estimates = staged(LISTS, Searcher._estimates)  # and this the one after it
    _estimated_words = staged(WORDS, Searcher._estimated_words)
    _hits = staged(HITS, Searcher._hits)

    def timed_search(self, query: Query, k: int) -> tuple[Result, dict[str, float]]:
        """Search for the targets of an indexed document, itself left out.

        Returns:
            The result, and milliseconds by stage; they sum to the time of the whole search.
        """
        self.clock = StageClock(self._now)
        with self.clock.stage(OTHER):
            result = self.search(query, k=k, without=query.document.doc_id)
        return result, {stage: 1000 * seconds for stage, seconds in self.clock.seconds.items()}
