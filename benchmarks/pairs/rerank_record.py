"""What re-ranking by a scorer of pairs came to, and everything needed to run it again; one JSON file a scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.pairs.record import chosen_digest
from benchmarks.pairs.scorer import Budget, Course
from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class FirstStage:
    """The system whose first targets are put in another order."""

    system: str
    encoder: str  # name@fingerprint; "" where it has none
    settings: Settings


@dataclass(frozen=True)
class RerankRecord:
    """The quality of rankings before and after a scorer put their beginnings in order."""

    kind: ClassVar[str] = "rerank"

    task: str
    dataset: str  # name@checksum
    split: str
    is_quick: bool
    first: FirstStage
    depth: int  # targets of a query that are scored
    k: int  # depth of the rankings
    protocol: str  # how the pairs were drawn that the scorer learned from
    pairs: str  # their checksum
    n_pairs: dict[str, int]  # by split; those of test are not looked at
    scorer: str
    encoder: str  # see `MatchingRecord`
    settings: Settings
    chosen: Settings
    budget: Budget
    course: Course | None
    fit_seconds: float
    seconds_per_query: float  # of scoring `depth` targets
    query_ids: list[str]
    before: dict[str, list[float]]  # metric to its values, in the order of `query_ids`
    after: dict[str, list[float]]
    at_best: dict[str, list[float]]  # were the targets that are scored in the order of their relevance
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix; runs that differ in anything but code and machine have other names."""
        stage = (self.first.system, self.first.encoder.partition("@")[0], f"first{self.depth}")
        learned = (self.scorer, self.encoder.partition("@")[0], self.protocol, self.pairs[:6])
        chosen = chosen_digest(self.chosen, self.budget)
        quick = "quick" if self.is_quick else ""
        return name_of(self.kind, self.task, *stage, *learned, chosen, self.split, quick, seed=self.origin.seed)
