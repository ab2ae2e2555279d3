from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.pairs.scoring import accuracy_threshold, f1_threshold, is_correct, judge

LABELS = np.array([True, False, True, True, False, False])
SCORES = np.array([0.9, 0.8, 0.7, 0.4, 0.3, 0.1])


def random_case(seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    labels = rng.random(30) < 0.5
    return np.round(rng.random(30) + 0.3 * labels, 1), labels  # rounded, so that many are equal


def counts(scores: NDArray[np.float64], labels: NDArray[np.bool_], threshold: float) -> tuple[int, int, int, int]:
    """Hits, false alarms, misses and the rest, one pair at a time."""
    called = [score > threshold for score in scores]
    kinds = list(zip(called, labels.tolist(), strict=True))
    return (
        kinds.count((True, True)),
        kinds.count((True, False)),
        kinds.count((False, True)),
        kinds.count((False, False)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_counted_over_all_pairs(seed: int) -> None:
    scores, labels = random_case(seed)
    tp, fp, fn, tn = counts(scores, labels, 0.6)
    judgment = judge(scores, labels, 0.6)
    assert judgment.accuracy == pytest.approx((tp + tn) / 30)
    assert (judgment.precision, judgment.recall) == pytest.approx((tp / (tp + fp), tp / (tp + fn)))
    assert judgment.f1 == pytest.approx(2 * tp / (2 * tp + fp + fn))
    wins = [(m > o) + (m == o) / 2 for m in scores[labels] for o in scores[~labels]]
    assert judgment.auc == pytest.approx(np.mean(wins))
    assert is_correct(scores, labels, 0.6).sum() == tp + tn


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_threshold_is_better_than_the_chosen_ones(seed: int) -> None:
    scores, labels = random_case(seed)
    tried = [judge(scores, labels, threshold) for threshold in np.arange(-0.05, 1.5, 0.1)]
    assert judge(scores, labels, accuracy_threshold(scores, labels)).accuracy == max(one.accuracy for one in tried)
    assert judge(scores, labels, f1_threshold(scores, labels)).f1 == max(one.f1 for one in tried)


def test_a_threshold_lies_in_the_middle_of_the_widest_gap() -> None:
    assert accuracy_threshold(SCORES, LABELS) == pytest.approx(0.35)  # 5 of 6 are right
    assert accuracy_threshold([4.0, 1.0, 0.0], [True, False, False]) == 2.5
    # Three of four are right between 0 and 1 and between 4 and 9; the latter gap is wider.
    assert accuracy_threshold([0.0, 1.0, 4.0, 9.0], [False, True, False, True]) == 6.5
    assert accuracy_threshold([0.0, 1.0, 2.0, 3.0], [False, True, False, True]) == 0.5  # the lowest of equal gaps


def test_a_threshold_outside_of_all_scores_is_taken_only_where_it_is_better() -> None:
    assert judge([1.0, 2.0], [True, False], accuracy_threshold([1.0, 2.0], [True, False])).accuracy == 0.5
    below = f1_threshold([1.0, 2.0], [True, False])
    assert below == np.nextafter(1.0, -np.inf)
    assert accuracy_threshold([1.0, 2.0, 3.0], [False, False, True]) == 2.5
    assert accuracy_threshold([1.0, 1.0, 1.0], [False, False, True]) == 1.0


@pytest.mark.parametrize(
    ("scores", "labels", "told"),
    [
        ([1.0, 2.0], [True], r"of one shape \(N,\), not \(2,\) and \(1,\)"),
        ([1.0, float("nan")], [True, False], "1 of 2 scores are no finite numbers"),
        ([1.0, 2.0], [True, True], "2 of 2 labels are matches; both kinds are needed"),
    ],
)
def test_scores_that_cannot_be_judged_are_refused(scores: list[float], labels: list[bool], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        judge(scores, labels, 0.5)
