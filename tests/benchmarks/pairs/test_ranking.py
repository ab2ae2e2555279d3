"""Rankings by scorers of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.baselines.lexical import BM25Pairs
from benchmarks.datasets import DatasetError
from benchmarks.pair_scorer import Pair
from benchmarks.systems import Ranking
from benchmarks.tasks.architectures import by_relevance, reranked, scored

RUN: dict[str, Ranking] = {"q": [("a", 9.0), ("b", 8.0), ("c", 7.0), ("d", 6.0)], "lonely": []}


class Given(BM25Pairs):
    """A scorer with given scores."""

    name = "given"

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        super().__init__()
        self.scores = scores

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        return np.array([self.scores[pair.first, pair.second] for pair in pairs], np.float64)


def targets(ranking: Ranking) -> list[str]:
    return [target for target, _ in ranking]


def test_targets_are_ranked_by_their_scores_and_equal_ones_keep_their_order() -> None:
    scorer = Given({("q", "a"): -1.0, ("q", "b"): 2.0, ("q", "c"): 2.0, ("r", "a"): 0.5})
    assert scored(scorer, {"q": ["a", "b", "c"], "r": ["a"]}) == {
        "q": [("b", 2.0), ("c", 2.0), ("a", -1.0)],
        "r": [("a", 0.5)],
    }


def test_only_the_first_targets_take_the_new_order_and_the_others_stay_behind_them() -> None:
    order: dict[str, Ranking] = {"q": [("d", 9.0), ("c", 3.0), ("b", 2.0), ("a", -1.0)], "lonely": []}
    ranked = reranked(RUN, order, 3)
    assert targets(ranked["q"]) == ["c", "b", "a", "d"]
    assert ranked["lonely"] == []
    written = [score for _, score in ranked["q"]]
    assert written == sorted(set(written), reverse=True)


def test_the_best_order_is_that_of_relevance() -> None:
    assert targets(by_relevance(RUN, {"q": {"d": 2, "c": 2, "b": 1}, "lonely": {}})["q"]) == ["c", "d", "b", "a"]


def test_the_error_for_a_score_that_is_not_a_number_names_the_pair() -> None:
    with pytest.raises(DatasetError, match="given gives q and b the score nan"):
        scored(Given({("q", "a"): 1.0, ("q", "b"): float("nan")}), {"q": ["a", "b"]})
