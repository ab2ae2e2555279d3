from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from benchmarks.metrics import evaluate
from benchmarks.sections.tied_ndcg import tied_ndcg

pytest.importorskip("sklearn")


def ndcg_by_hand(gains: list[int], k: int) -> float:
    """Of one order, best first."""

    def dcg(ordered: list[int]) -> float:
        return sum(gain / np.log2(rank + 1) for rank, gain in enumerate(ordered[:k], start=1))

    return dcg(gains) / dcg(sorted(gains, reverse=True))


@pytest.mark.parametrize("seed", range(3))
def test_without_ties_it_is_the_metric_of_the_other_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    relevance = {f"d{number}": int(value) for number, value in enumerate(rng.integers(0, 4, 40))}
    scores = dict(zip(relevance, rng.permutation(40).tolist(), strict=True))
    ranking = sorted(scores, key=lambda name: -scores[name])
    expected = evaluate({"q": relevance}, {"q": ranking})["nDCG@10"]["q"]
    assert tied_ndcg(relevance, scores, 10) == pytest.approx(expected, abs=1e-9)


def test_ties_are_the_mean_over_all_their_orders() -> None:
    relevance = {"a": 3, "b": 0, "c": 1, "d": 0, "e": 2}
    scores = {"a": 0.0, "b": 0.9, "c": 0.0, "d": 0.0, "e": 0.0}
    orders = [ndcg_by_hand([0, *order], 3) for order in permutations([7, 1, 0, 3])]
    assert tied_ndcg(relevance, scores, 3) == pytest.approx(np.mean(orders))
    assert tied_ndcg(dict.fromkeys("ab", 0), {"a": 1.0, "b": 0.5}, 3) == 0
