"""The targets onto which a document is moved at the least cost: prefetch and prune. Knows nothing of words.

Kusner et al. (2015), section 4: targets are taken in the order of a bound; the first k
are moved onto for certain, another only if no bound of it is above the k-th best cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-6  # that a bound may stand above a cost it is equal to


@dataclass(frozen=True)
class Found:
    """The nearest targets, and what finding them took."""

    rows: list[int]  # nearest first, equal ones by row
    costs: list[float]
    n_solved: int  # transport problems; all targets at most


def prefetch_and_prune(
    bounds: NDArray[np.float64],
    k: int,
    cost: Callable[[int, float], float | None],
    *,
    most: int | None = None,
) -> Found:
    """Find the k targets of the least cost, looking at as few as their bounds allow.

    Args:
        bounds: (N,) which costs are not below; infinite where a target is left out.
        k: how many.
        cost: from a row and a limit to its cost, or None as soon as that is seen to be above the limit.
        most: look only at so many targets, those of the lowest bounds; by default none is
            passed over that could be among the k, and the answer is exact.
    """
    order = np.argsort(bounds, kind="stable")[:most]
    best: list[tuple[float, int]] = []  # a heap of the k best, the worst on top, both values negated
    n_solved = 0
    for row in order.tolist() if k else []:
        limit = -best[0][0] + _ROUNDING if len(best) == k else np.inf
        if bounds[row] > limit or bounds[row] == np.inf:
            break
        found = cost(row, limit)
        if found is None:
            continue
        n_solved += 1
        place = (-found, -row)
        if len(best) < k:
            heapq.heappush(best, place)
        else:
            heapq.heappushpop(best, place)
    ranked = sorted((-negated, -row) for negated, row in best)
    return Found([row for _, row in ranked], [value for value, _ in ranked], n_solved)
