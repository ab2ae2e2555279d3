"""Tests whether the difference between two systems is significant: pure functions of one value a query.

Queries that depend on each other, such as several about one document, form a group, which is drawn or swapped as a
whole: its values carry less information than those of as many independent queries.

Letters in shapes: N queries, G groups of queries (G = N where each query is its own), B samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_EXACT = 16  # differences up to which all 2^G sign patterns are tried
_BLOCK_VALUES = 1 << 22  # numbers drawn at a time: 32 MiB


def randomization_p(
    a: ArrayLike, b: ArrayLike, *, groups: Sequence[Hashable] | None = None, n_samples: int = 100_000, seed: int = 0
) -> float:
    """Two-sided p-value of the paired randomisation test on the mean difference.

    Under the hypothesis that the systems are alike, the two values of each query
    can be swapped (Fisher 1935; Smucker et al. 2007, for retrieval), those of a
    group g all together:

        p = P(|sum_g s_g d_g| >= |sum_g d_g|),  d_g = sum_{i in g} (a_i - b_i),  s_g = +1 or -1

    All sign patterns are tried for up to `MAX_EXACT` groups that differ. Beyond
    that `n_samples` of them are drawn and p = (1 + n as extreme) / (1 + n_samples).

    `a` and `b` are (N,) values, query by query; without `groups`, each query is its own.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired values must be of one shape (N,), not {first.shape} and {second.shape}")
    differences = np.bincount(_group_numbers(groups, first.size), weights=first - second)
    differences = differences[differences != 0]
    if differences.size <= MAX_EXACT:
        return float(np.mean(_is_as_extreme(_all_patterns(differences.size), differences)))
    draw = np.random.default_rng(seed)
    rows = max(1, _BLOCK_VALUES // differences.size)
    sizes = (min(rows, n_samples - start) for start in range(0, n_samples, rows))
    blocks = (_random_bits(draw, (n, differences.size)) for n in sizes)
    n_extreme = sum(np.count_nonzero(_is_as_extreme(block, differences)) for block in blocks)
    return (1 + n_extreme) / (1 + n_samples)


def bootstrap_interval(
    values: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    n_samples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over queries (Efron 1979).

    With groups, G of them are drawn with replacement, each with all of its queries (the cluster bootstrap; Davison &
    Hinkley 1997, section 3.8), and the mean is that over all queries drawn: groups count by their size.

    There is at least one value; without `groups`, each query is its own.
    """
    observed = np.asarray(values, dtype=np.float64)
    numbers = _group_numbers(groups, observed.size)
    sums, counts = np.bincount(numbers, weights=observed), np.bincount(numbers)  # (G,)
    if sums.size == 1:
        return float(observed.mean()), float(observed.mean())
    draw = np.random.default_rng(seed)
    rows = max(1, _BLOCK_VALUES // sums.size)
    means = list[NDArray[np.float64]]()
    for start in range(0, n_samples, rows):
        chosen = draw.integers(0, sums.size, (min(rows, n_samples - start), sums.size))
        n_values = sums.size if groups is None else counts[chosen].sum(1)
        means.append(sums[chosen].sum(1) / n_values)
    low, high = np.percentile(np.concatenate(means), [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust the p-values of one family of tests for multiple comparisons.

    The step-down method of Holm (1979), which holds whatever the dependence between tests: with the (m,) p-values in
    rising order,

        adjusted p_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)),  i = 1 .. m

    Returns: (m,) adjusted p-values in [0, 1], in the order given; m may be 0.
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    n_left = np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, n_left * given[order]))
    return adjusted


def _group_numbers(groups: Sequence[Hashable] | None, n_queries: int) -> NDArray[np.int64]:
    """(N,) the number of the group of each query, from 0 in the order in which groups first occur."""
    if groups is None:
        return np.arange(n_queries)
    if len(groups) != n_queries:
        raise ValueError(f"each value is of one group: {n_queries} values, {len(groups)} groups named")
    number_of = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return np.array([number_of[group] for group in groups], np.int64)


def _is_as_extreme(swapped: NDArray[np.integer], differences: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(B,) from (B, G) swaps, 1 where the values of a group are swapped."""
    observed = differences.sum()
    # A product of mixed types does not use BLAS, and takes longer than a conversion and a product.
    sums = observed - 2 * (swapped.astype(np.float64) @ differences)
    # Sums that are equal in exact arithmetic differ in their last bits, since they are added in another order.
    tolerance = 1e-12 * np.abs(differences).sum()
    extreme: NDArray[np.bool_] = np.abs(sums) >= abs(observed) - tolerance
    return extreme


def _all_patterns(n: int) -> NDArray[np.int8]:
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.int8)


def _random_bits(draw: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Each 0 or 1; eight to a random byte, which takes a fraction of the time of one byte each."""
    n_bits = shape[0] * shape[1]
    random_bytes = np.frombuffer(draw.bytes(-(-n_bits // 8)), np.uint8)
    return np.unpackbits(random_bytes, count=n_bits).reshape(shape)
