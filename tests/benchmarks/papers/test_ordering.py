from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.papers.comparison import Agreement, agreement

NAMES = "abcdef"


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_kendalls_where_the_paper_orders_everything(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    published, ours = np.random.default_rng(seed).permuted(np.tile(np.arange(6.0), (2, 1)), axis=1)
    place = dict(zip(NAMES, published, strict=True))
    order = [(a, b) if place[a] > place[b] else (b, a) for a, b in combinations(NAMES, 2)]
    found = agreement(order, dict(zip(NAMES, ours, strict=True)), dict.fromkeys(order, 1.0))
    assert found.tau == pytest.approx(stats.kendalltau(published, ours).statistic)
    assert (found.n_pairs, found.n_shared + found.n_reversed) == (15, 15)


def test_pairs_that_are_equal_here_are_neither_shared_nor_reversed() -> None:
    order = [("a", "b"), ("a", "c"), ("b", "c")]
    found = agreement(order, {"a": 0.5, "b": 0.5, "c": 0.7}, dict(zip(order, (1.0, 0.2, 0.01), strict=True)))
    assert found == Agreement(n_pairs=3, n_shared=0, n_reversed=2, n_decided=1, n_decided_shared=0)
    assert found.tau == pytest.approx(-2 / 3)


def test_decided_pairs_are_counted_apart() -> None:
    order = [("a", "b"), ("a", "c"), ("b", "c")]
    found = agreement(order, {"a": 3.0, "b": 1.0, "c": 2.0}, dict(zip(order, (0.01, 0.3, 0.049), strict=True)))
    assert (found.n_shared, found.n_decided, found.n_decided_shared) == (2, 2, 1)


def test_variants_that_were_not_measured_are_left_out() -> None:
    found = agreement([("a", "b"), ("a", "c")], {"a": 1.0, "c": 0.5}, {("a", "c"): 0.01})
    assert (found.n_pairs, found.tau) == (1, 1.0)
    assert agreement([], {"a": 1.0}, {}).tau is None
