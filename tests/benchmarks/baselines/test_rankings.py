from __future__ import annotations

import numpy as np

from benchmarks.baselines.rankings import ranking

SCORES = np.array([1.0, 3.0, 2.0, 2.0, 0.0])


def test_the_best_come_first_and_equal_ones_in_their_order() -> None:
    assert ranking("abcde", SCORES, 3, own=0, least=0.0) == [("b", 3.0), ("c", 2.0), ("d", 2.0)]


def test_the_query_is_left_out_wherever_it_stands() -> None:
    assert ranking("abcde", SCORES, 2, own=1, least=0.0) == [("c", 2.0), ("d", 2.0)]
    assert ranking("abcde", SCORES, 9, own=4, least=-1.0) == [("b", 3.0), ("c", 2.0), ("d", 2.0), ("a", 1.0)]


def test_what_scores_nothing_is_not_found() -> None:
    assert [name for name, _ in ranking("abcde", SCORES, 9, own=0, least=0.0)] == ["b", "c", "d"]
