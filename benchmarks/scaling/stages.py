"""A searcher that knows how long each stage of a search took; it answers as any other.

A stage is a method of `Searcher` or of `LocalPartition`, named here in a class body: one that is renamed
there is an error at import. A stage within another one counts by itself alone, and what is in none counts as
`OTHER`, so the stages sum to the whole and no part of it can be missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from engine.index import Index
from engine.result import Result
from engine.scoring.evidence import Scoring
from engine.search.local_partition import LocalPartition
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


class Timed(Protocol):
    """An object with a clock."""

    @property
    def clock(self) -> StageClock:
        """Of its stages."""


def staged(
    name: str, method: Callable[Concatenate[Any, Arguments], Answer]
) -> Callable[Concatenate[Any, Arguments], Answer]:
    """The same method, as a stage of a class with a clock."""

    def timed(self: Timed, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        with self.clock.stage(name):
            return method(self, *arguments, **named)

    return timed


class StagedPartition(LocalPartition):
    """Takes the time of its own stages."""

    def __init__(self, index: Index, scoring: Scoring, clock: StageClock) -> None:
        """Rank the documents of an open index."""
        super().__init__(index.snapshot, scoring)
        self.clock = clock

    _ranked = staged(SCORES, LocalPartition._ranked)  # which calls the next one
    _estimates = staged(LISTS, LocalPartition._estimates)  # and this the one after it
    _estimated_words = staged(WORDS, LocalPartition._estimated_words)
    _named = staged(SCORES, LocalPartition._named)


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
        self._staged = StagedPartition(index, self.scoring, StageClock(now))
        self._partitions = [self._staged]

    prepare = staged(THRESHOLDS, Searcher.prepare)
    _hits = staged(HITS, Searcher._hits)

    @property
    def clock(self) -> StageClock:
        """That of the last search."""
        return self._staged.clock

    def timed_search(self, query: Query, k: int) -> tuple[Result, dict[str, float]]:
        """Search for the targets of an indexed document, itself left out.

        Returns:
            The result, and milliseconds by stage; they sum to the time of the whole search.
        """
        self._staged.clock = StageClock(self._now)
        with self.clock.stage(OTHER):
            result = self.search(query, k=k, without=query.document.doc_id)
        return result, {stage: 1000 * seconds for stage, seconds in self.clock.seconds.items()}
