"""Records of pair matching, made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.pairs.judging import judge
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.scorer import Budget, Course
from indexer.training.origin import Origin


def matching_record(origin: Origin, scorer: str, scores: list[float], *, seed: int = 0) -> MatchingRecord:
    """Six pairs of test, the first three of which match; the threshold is .5. Nothing was learned."""
    labels = [1, 1, 1, 0, 0, 0]
    judgment = judge(scores, np.array(labels, bool), 0.5)
    return MatchingRecord(
        task="pets",
        dataset="pets@0a",
        protocol="aan",
        split_rule="document",
        pairs="0b1c2d3e4f5a",
        n_pairs={"train": 40, "valid": 6, "test": 6},
        n_documents={"train": 1030, "valid": 7, "test": 8},
        n_lost={"train": 0, "valid": 0, "test": 0},
        is_quick=False,
        scorer=scorer,
        encoder="",
        settings={"k1": 1.5},
        chosen={},
        budget=None,
        course=None,
        fit_seconds=1.5,
        score_seconds=0.25,
        at_accuracy=judgment,
        at_f1=judgment,
        scores=scores,
        labels=labels,
        groups=[0, 1, 2, 3, 4, 5],
        origin=replace(origin, seed=seed),
    )


def learned(record: MatchingRecord, budget: Budget | None = None, course: Course | None = None) -> MatchingRecord:
    """The same of a scorer that learned."""
    return replace(record, budget=budget or Budget(), course=course or Course(1000, 800, 0.9))
