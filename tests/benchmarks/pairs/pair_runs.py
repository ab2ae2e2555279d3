"""Runs of pairs, made by hand."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from benchmarks.pair_scorer import Course
from benchmarks.pairs.tables import GivenBudget, PairsDetails
from benchmarks.runs import Case, Run
from indexer.origin import Origin

DETAILS = PairsDetails(
    protocol="aan",
    split_rule="document",
    pairs="0b1c2d3e4f5a",
    n_pairs={"train": 40, "valid": 6, "test": 6},
    n_documents={"train": 1030, "valid": 7, "test": 8},
    n_lost={"train": 0, "valid": 0, "test": 0},
    chosen={},
    budget=None,
    course=None,
    accuracy_threshold=0.5,
    f1_threshold=0.5,
)


def pairs_run(origin: Origin, system: str, scores: list[float], *, seed: int = 0, groups: str = "abcdef") -> Run:
    """Six pairs of test, the first three of which match; the threshold is 0.5. Nothing was learned."""
    cases = [
        Case(id=str(number), values={"score": score, "match": float(number < 3)}, group=group)
        for number, (score, group) in enumerate(zip(scores, groups, strict=True))
    ]
    where = replace(origin, seed=seed)
    return Run(task="pairs", dataset="pets@0a", system=system, details=asdict(DETAILS), origin=where, cases=cases)


def changed(run: Run, **details: Any) -> Run:  # noqa: ANN401
    """The run with other details."""
    return replace(run, details=asdict(replace(run.details_as(PairsDetails), **details)))


def learned(run: Run, budget: GivenBudget | None = None, course: Course | None = None) -> Run:
    """The run as that of a scorer that was trained."""
    return changed(run, budget=budget or GivenBudget(), course=course or Course(1000, 800, 0.9))
