from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sections.courses import COARSE_SHARES, SHARES, Course, follow, mean_course, summaries
from benchmarks.sections.matches import Placed
from benchmarks.sections.parts import Order, Parts

TOKENS = np.array([10, 20, 30, 40])
WORTH = np.array([0.4, 0.3, 0.2, 0.1])  # of each part; a score is the sum of what is there


def parts() -> Parts:
    return Parts(np.arange(4), TOKENS, WORTH, WORTH)


def rescore(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Placed:
    return Placed(float(2 * WORTH[kept].sum()), float(1 + 4 * np.count_nonzero(~kept)))


def deletion_by_hand(order: Order, share: float) -> float:
    """The line between the last part that is wholly removed at a share, and the next one."""
    done, score = 0.0, 1.0
    for part in order:
        if done + TOKENS[part] / 100 > share:
            return score - WORTH[part] * (share - done) / (TOKENS[part] / 100)
        done += TOKENS[part] / 100
        score -= WORTH[part]
    return 0.0


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
@pytest.mark.parametrize("shares", [SHARES, COARSE_SHARES])
def test_a_course_is_the_line_through_the_parts(order: list[int], shares: tuple[float, ...]) -> None:
    course = follow(parts(), np.array(order), rescore, shares)
    expected = [deletion_by_hand(np.array(order), share) for share in shares]
    np.testing.assert_allclose(course.deletion, expected, atol=1e-12)
    # The score is a sum, so what is put in and what is left make the whole.
    np.testing.assert_allclose(course.insertion, 1 - course.deletion, atol=1e-12)
    assert (course.deletion_rank[0], course.insertion_rank[-1]) == (1.0, 1.0)
    assert course.deletion_rank[-1] == course.insertion_rank[0] == pytest.approx(1 / 17)


def test_only_what_is_near_a_share_is_scored() -> None:
    asked: list[int] = []

    def ask(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Placed:
        asked.append(int(kept.sum()))
        return Placed(float(kept.mean()), 1.0)

    many = Parts(np.arange(1000), np.ones(1000, np.int64), np.ones(1000), np.ones(1000))
    course = follow(many, np.arange(1000), ask, COARSE_SHARES)
    np.testing.assert_allclose(course.deletion, 1 - np.array(COARSE_SHARES))
    numbers = [round(1000 * share) for share in COARSE_SHARES]
    assert sorted(asked) == sorted([*numbers, *(1000 - number for number in numbers)])


def test_the_best_order_has_the_least_area_under_deletion() -> None:
    orders = [np.arange(4), np.arange(4)[::-1]]
    good, bad = (summaries(follow(parts(), order, rescore, SHARES), SHARES) for order in orders)
    assert good["deletion_area"] < bad["deletion_area"] and good["insertion_area"] > bad["insertion_area"]
    assert good["comprehensiveness"] > bad["comprehensiveness"] and good["sufficiency"] < bad["sufficiency"]


def test_summaries_by_hand() -> None:
    ends = np.array([1.0, 0.9, 0.8, 0.6, 0.2, 0.0])
    summed = summaries(Course(ends, 1 - ends, ends, ends), COARSE_SHARES)
    area = (0.05 * 1.9 + 0.05 * 1.7 + 0.1 * 1.4 + 0.3 * 0.8 + 0.5 * 0.2) / 2
    assert summed["deletion_area"] == pytest.approx(area)
    assert summed["insertion_area"] == pytest.approx(1 - area)
    assert summed["comprehensiveness"] == pytest.approx((0.1 + 0.2 + 0.4 + 0.8) / 4)
    assert summed["sufficiency"] == pytest.approx((0.9 + 0.8 + 0.6 + 0.2) / 4)


def test_a_mean_is_taken_share_by_share() -> None:
    one, other = (Course(*(np.full(2, value) for _ in range(4))) for value in (0.0, 1.0))
    assert mean_course([one, other]).insertion_rank.tolist() == [0.5, 0.5]
