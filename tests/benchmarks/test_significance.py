from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from benchmarks.significance import bootstrap_interval, holm, randomization_p


def p_by_hand(a: list[float], b: list[float]) -> float:
    """Every pattern of signs, one at a time."""
    differences = [x - y for x, y in zip(a, b, strict=True)]
    observed = abs(sum(differences))
    patterns = list(product([1, -1], repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(total >= observed - 1e-9 for total in sums) / len(patterns)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_every_sign_pattern_is_tried_for_few_queries(n: int) -> None:
    values = np.random.default_rng(n).integers(0, 6, size=(2, n)) / 5
    a, b = values[0].tolist(), values[1].tolist()
    assert randomization_p(a, b) == pytest.approx(p_by_hand(a, b))


def test_drawn_patterns_come_near_the_exact_value() -> None:
    a, b = np.random.default_rng(3).random((2, 17)).tolist()
    exact = p_by_hand(a, b)
    assert randomization_p(a, b, n_samples=200_000) == pytest.approx(exact, abs=5 * (exact / 200_000) ** 0.5)


def test_known_p_values() -> None:
    assert randomization_p([1.0] * 5, [0.0] * 5) == 2 / 2**5
    assert randomization_p([0.3, 0.7], [0.3, 0.7]) == 1.0
    assert randomization_p([0.1, 0.2, 0.9], [0.1, 0.2, 0.1]) == 1.0  # one query that differs can go either way
    assert randomization_p([1.0] * 60, [0.0] * 60, n_samples=999) == 1 / 1000


def test_a_p_value_does_not_depend_on_who_is_first() -> None:
    a, b = np.random.default_rng(5).random((2, 40))
    assert randomization_p(a, b, seed=1) == randomization_p(b, a, seed=1)


def test_the_interval_is_that_of_all_resamples() -> None:
    values = [0.0, 0.1, 0.5, 0.6, 1.0]
    all_means = [float(np.mean(resample)) for resample in product(values, repeat=5)]
    low, high = np.quantile(all_means, [0.05, 0.95])
    assert bootstrap_interval(values, level=0.9, n_samples=50_000) == pytest.approx((low, high), abs=0.011)


def test_equal_values_have_an_interval_without_width() -> None:
    assert bootstrap_interval([0.25] * 8) == (0.25, 0.25)
    assert bootstrap_interval([0.0, 1.0]) == (0.0, 1.0)


def test_values_that_are_not_paired_and_groups_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape \(N,\), not \(2,\) and \(3,\)"):
        randomization_p([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="2 values, 3 groups named"):
        bootstrap_interval([0.1, 0.2], groups=["a", "b", "b"])


def test_the_interval_draws_whole_groups() -> None:
    values, topics = [0.0, 0.2, 0.4, 1.0, 0.5, 0.9], ["a", "a", "a", "b", "c", "c"]
    members = {"a": [0.0, 0.2, 0.4], "b": [1.0], "c": [0.5, 0.9]}
    all_means = [float(np.mean([v for name in drawn for v in members[name]])) for drawn in product("abc", repeat=3)]
    low, high = np.quantile(all_means, [0.05, 0.95])
    interval = bootstrap_interval(values, groups=topics, level=0.9, n_samples=50_000)
    assert interval == pytest.approx((low, high), abs=0.011)


@pytest.mark.parametrize("n_groups", [1, 4, 17])
def test_groups_are_swapped_as_a_whole(n_groups: int) -> None:
    a, b = np.random.default_rng(n_groups).random((2, 3 * n_groups))
    topics = [number % n_groups for number in range(3 * n_groups)]
    sums = [[float(side[number::n_groups].sum()) for number in range(n_groups)] for side in (a, b)]
    tolerance = 0.0 if n_groups < 17 else 0.01
    assert randomization_p(a, b, groups=topics) == pytest.approx(p_by_hand(*sums), abs=tolerance or 1e-12)


def holm_by_hand(p_values: list[float]) -> list[float]:
    """For each p-value the largest correction among the p-values up to it, one at a time."""
    rising = sorted(p_values)
    adjusted = []
    for p in p_values:
        largest = 0.0
        for n_before, other in enumerate(rising):
            if other <= p:
                largest = max(largest, min(1.0, (len(rising) - n_before) * other))
        adjusted.append(largest)
    return adjusted


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30])
def test_holms_values_equal_the_equation(n: int) -> None:
    p_values = (np.random.default_rng(n).integers(0, 12, size=n) / 100).tolist()  # with ties
    assert holm(p_values).tolist() == pytest.approx(holm_by_hand(p_values))
