"""Is a difference between two systems more than chance? Pure functions of values a query.

Letters in shapes: N queries, B samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_EXACT = 16  # differences up to which all 2^N sign patterns are tried
_BLOCK_VALUES = 1 << 22  # numbers drawn at a time: 32 MiB


def randomization_p(a: ArrayLike, b: ArrayLike, *, n_samples: int = 100_000, seed: int = 0) -> float:
    """Two-sided p-value of the paired randomisation test on the mean difference.

    Under the hypothesis that the systems are alike, each query's two values may
    be swapped (Fisher 1935; Smucker et al. 2007, for retrieval):

        p = P(|sum_i s_i (a_i - b_i)| >= |sum_i (a_i - b_i)|),  s_i = +1 or -1

    All sign patterns are tried for up to `MAX_EXACT` queries that differ. Beyond
    that `n_samples` of them are drawn and p = (1 + n as extreme) / (1 + n_samples).

    Args:
        a: (N,) values of one system.
        b: (N,) values of the other, query by query.

    Raises:
        ValueError: the shapes differ.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired values must be of one shape (N,), not {first.shape} and {second.shape}")
    differences = (first - second)[first != second]
    if differences.size <= MAX_EXACT:
        return float(np.mean(_is_as_extreme(_all_patterns(differences.size), differences)))
    draw = np.random.default_rng(seed)
    blocks = _blocks(n_samples, differences.size, lambda shape: draw.integers(0, 2, size=shape, dtype=np.int8))
    n_extreme = sum(np.count_nonzero(_is_as_extreme(block, differences)) for block in blocks)
    return (1 + n_extreme) / (1 + n_samples)


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, n_samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over queries (Efron 1979).

    Args:
        values: (N,), one a query, N at least 1.
        level: share of resampled means that the interval holds, in (0, 1).

    Returns:
        Its lower and upper end.
    """
    observed = np.asarray(values, dtype=np.float64)
    if observed.ndim != 1 or not observed.size:
        raise ValueError(f"values must be of shape (N,), N at least 1, not {observed.shape}")
    draw = np.random.default_rng(seed)
    blocks = _blocks(n_samples, observed.size, lambda shape: draw.integers(observed.size, size=shape))
    resampled = np.concatenate([observed[block].mean(axis=1) for block in blocks])
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _is_as_extreme(swapped: NDArray[np.integer], differences: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(B,) from (B, N) swaps, 1 where a query's values change places."""
    observed = differences.sum()
    sums = observed - 2 * (swapped @ differences)
    # Sums that are equal on paper differ in their last bits, as they are added in another order.
    tolerance = 1e-12 * np.abs(differences).sum()
    extreme: NDArray[np.bool_] = np.abs(sums) >= abs(observed) - tolerance
    return extreme


def _all_patterns(n: int) -> NDArray[np.int8]:
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.int8)


def _blocks(
    n_samples: int, n_queries: int, draw: Callable[[tuple[int, int]], NDArray[np.integer]]
) -> Iterator[NDArray[np.integer]]:
    rows = max(1, _BLOCK_VALUES // n_queries)
    for start in range(0, n_samples, rows):
        yield draw((min(rows, n_samples - start), n_queries))
