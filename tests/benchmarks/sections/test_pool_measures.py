from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from benchmarks.sections.pool_measures import average_precision, pool_ndcg

RELEVANCE = {"a": 3, "b": 0, "c": 2, "d": 1, "e": 0, "f": 2, "g": 3}


def dcg(relevance: list[int]) -> float:
    """The authors' script, one rank at a time."""
    return sum(value / (1 if rank == 1 else math.log2(rank)) for rank, value in enumerate(relevance, start=1))


def over_orders(scores: dict[str, float], share: float) -> tuple[float, float]:
    """nDCG and average precision, the mean over every order of the candidates that the scores allow."""
    k = int(share * len(scores))
    best = dcg(sorted(RELEVANCE.values(), reverse=True)[:k])
    ndcg, precision = [], []
    for order in permutations(scores):
        ranked = [scores[name] for name in order]
        if ranked == sorted(ranked, reverse=True):
            values = [RELEVANCE[name] for name in order]
            hits = [value >= 2 for value in values]
            ndcg.append(dcg(values[:k]) / best)
            precision.append(np.mean([sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit]))
    return float(np.mean(ndcg)), float(np.mean(precision))


@pytest.mark.parametrize("n_levels", [2, 3, 7])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_both_are_means_over_all_orders_of_what_is_equal(n_levels: int, share: float) -> None:
    levels = np.random.default_rng(n_levels).integers(0, n_levels, len(RELEVANCE)).tolist()
    scores = dict(zip(RELEVANCE, map(float, levels), strict=True))
    expected = over_orders(scores, share)
    assert pool_ndcg(RELEVANCE, scores, share) == pytest.approx(expected[0])
    assert average_precision(RELEVANCE, scores) == pytest.approx(expected[1])


def test_a_fifth_of_the_pool_counts() -> None:
    relevance = {f"c{number}": number % 4 for number in range(24)}  # int(.2 * 24) is 4
    scores = {name: -float(name[1:]) for name in relevance}
    expected = (0 + 1 + 2 / math.log2(3) + 3 / 2) / (3 + 3 + 3 / math.log2(3) + 3 / 2)
    assert pool_ndcg(relevance, scores) == pytest.approx(expected)


def test_a_pool_without_a_relevant_candidate_has_0() -> None:
    nothing = dict.fromkeys("abcde", 0)
    assert (
        pool_ndcg(nothing, dict.fromkeys("abcde", 1.0)),
        average_precision(nothing, dict.fromkeys("abcde", 1.0)),
    ) == (0, 0)
