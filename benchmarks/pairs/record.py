"""What a run of pair matching measured, and everything needed to run it again; one JSON file a scorer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import ClassVar

from benchmarks.pairs.judging import Judgment
from benchmarks.pairs.scorer import Budget, Course
from benchmarks.record_file import name_of
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class MatchingRecord:
    """How well one scorer tells the pairs of test apart."""

    kind: ClassVar[str] = "matching"

    task: str
    dataset: str  # name@checksum
    protocol: str  # how pairs were drawn
    split_rule: str  # what splits share
    pairs: str  # checksum of all pairs in their order; records of equal ones are compared pair by pair
    n_pairs: dict[str, int]  # by split
    n_documents: dict[str, int]  # that the pairs of a split name
    n_lost: dict[str, int]  # by split: pairs that went, as no mismatch or no text was left for them
    is_quick: bool  # few pairs, short documents: only to see that it runs
    scorer: str
    encoder: str  # what it was given of weights or tokenizer, as name@checksum; "" where nothing
    settings: Settings
    chosen: Settings  # those of them that are not the scorer's defaults
    budget: Budget | None  # None where nothing is learned from pairs
    course: Course | None  # what learning came to; likewise
    fit_seconds: float
    score_seconds: float  # of valid and test
    at_accuracy: Judgment  # of test, at the threshold of best accuracy on valid
    at_f1: Judgment  # at that of best F1 on valid
    scores: list[float]  # of test, to 9 digits; the judgments are of these
    labels: list[int]  # 1 where a pair of test matches
    groups: list[int]  # number of the first document of each pair of test; pairs of one are not independent
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix; runs that differ in anything but code and machine have other names."""
        quick = "quick" if self.is_quick else ""
        parts = (self.kind, self.task, self.protocol, self.split_rule, self.scorer, self.encoder, self.pairs[:6])
        return name_of(*parts, chosen_digest(self.chosen, self.budget), quick, seed=self.origin.seed)


def chosen_digest(chosen: Settings, budget: Budget | None) -> str:
    """First 6 hex digits over what was chosen, the budget too; "" where all of it is as by default."""
    spent = {} if budget in (None, Budget()) else asdict(budget or Budget())
    if not chosen and not spent:
        return ""
    told = json.dumps([chosen, spent], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:6]
