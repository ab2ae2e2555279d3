from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.transport_search import prefetch_and_prune

RNG = np.random.default_rng(0)


def test_the_answer_is_that_of_looking_at_everything() -> None:
    for k in (1, 3, 10, 60):
        true = RNG.uniform(0, 1, 50).round(1)  # with many ties
        bounds = true * RNG.uniform(0.3, 1, 50)
        bounds[7] = np.inf
        found = prefetch_and_prune(bounds, k, lambda row, _, true=true: float(true[row]))
        expected = sorted((float(true[row]), row) for row in range(50) if row != 7)[:k]
        assert list(zip(found.costs, found.rows, strict=True)) == expected


def test_targets_that_no_bound_lets_in_are_not_looked_at() -> None:
    true = np.array([0.3, 0.1, 0.2, 0.9, 0.8])
    seen: list[int] = []

    def cost(row: int, limit: float) -> float:
        seen.append(row)
        return float(true[row])

    found = prefetch_and_prune(np.array([0.25, 0.1, 0.2, 0.5, 0.4]), 2, cost)
    assert (found.rows, found.costs, found.n_solved, seen) == ([1, 2], [0.1, 0.2], 2, [1, 2])


def test_a_target_given_up_halfway_is_not_found_and_not_counted() -> None:
    true = [0.1, 0.5, 0.4, 0.2]
    limits: list[float] = []

    def cost(row: int, limit: float) -> float | None:
        limits.append(limit)
        return None if true[row] > limit else true[row]

    found = prefetch_and_prune(np.zeros(4), 2, cost)
    assert (found.rows, found.n_solved) == ([0, 3], 4)
    assert limits == pytest.approx([np.inf, np.inf, 0.5, 0.4], abs=1e-5)
    assert prefetch_and_prune(np.zeros(4), 1, cost).n_solved == 1


def test_at_most_the_candidates_are_looked_at() -> None:
    true = [0.1, 0.2, 0.3, 0.0]
    found = prefetch_and_prune(np.array([0.0, 0.0, 0.1, 0.2]), 2, lambda row, _: true[row], most=3)
    assert (found.rows, found.n_solved) == ([0, 1], 3)
    assert prefetch_and_prune(np.zeros(4), 0, lambda row, _: true[row]).rows == []
