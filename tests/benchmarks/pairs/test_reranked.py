from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.baselines.bm25_pairs import BM25Pairs
from benchmarks.datasets import DatasetError
from benchmarks.pairs.reranked import by_relevance, rerank
from benchmarks.pairs.scorer import Pair
from benchmarks.systems import Ranking

RUN: dict[str, Ranking] = {"q": [("a", 9.0), ("b", 8.0), ("c", 7.0), ("d", 6.0)], "lonely": []}


class Given(BM25Pairs):
    """Scores that are given."""

    name = "given"

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        super().__init__()
        self.scores = scores
        self.asked: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        self.asked += [(pair.first, pair.second) for pair in pairs]
        return np.array([self.scores[pair.first, pair.second] for pair in pairs], np.float64)


def targets(ranking: Ranking) -> list[str]:
    return [target for target, _ in ranking]


def test_only_the_first_targets_are_scored_and_the_others_stay_behind_them() -> None:
    scorer = Given({("q", "a"): -1.0, ("q", "b"): 2.0, ("q", "c"): 3.0})
    run = rerank(RUN, scorer, 3)
    assert targets(run["q"]) == ["c", "b", "a", "d"]
    assert run["lonely"] == []
    assert scorer.asked == [("q", "a"), ("q", "b"), ("q", "c")]


def test_equal_scores_keep_the_order_and_written_scores_fall() -> None:
    run = rerank(RUN, Given({("q", one): 1.0 for one in "abcd"}), 20)
    assert targets(run["q"]) == ["a", "b", "c", "d"]
    written = [score for _, score in run["q"]]
    assert written == sorted(set(written), reverse=True)


def test_the_best_order_is_that_of_relevance_within_the_depth() -> None:
    run = by_relevance(RUN, {"q": {"d": 2, "c": 2, "b": 1}, "lonely": {"a": 1}}, 3)
    assert targets(run["q"]) == ["c", "b", "a", "d"]


def test_a_score_that_is_no_number_names_the_pair() -> None:
    with pytest.raises(DatasetError, match="given gives q and b the score nan"):
        rerank(RUN, Given({("q", "a"): 1.0, ("q", "b"): float("nan")}), 2)
