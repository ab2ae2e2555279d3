"""The measures that CSFCube's authors publish, over the pool of a query: nDCG%20 and average precision.

They are those of eval_scripts/ranking_eval.py in github.com/iesl/CSFCube (commit 72f8bf9), with one departure: where
scores are equal, the value is the mean over all orders of what is equal (McSherry & Najork 2008), not that of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

POOL_SHARE = 0.2  # of a pool, whose ranks count
RELEVANT_FROM = 2  # "similar"; 1 is "related"


def pool_ndcg(relevance: Mapping[str, int], scores: Mapping[str, float], share: float = POOL_SHARE) -> float:
    """nDCG over the first share of a pool: with n candidates and k = int(share n)

        DCG = r_1 + sum_{i=2}^{k} r_i / log2(i)

    over the DCG of the best order of the whole pool. The gain is the relevance
    itself, and the second rank counts as much as the first: another nDCG than that
    of `benchmarks.metrics`.

    Args:
        relevance: of each candidate, at least 0.
        scores: of the same candidates, higher is better.
        share: of the pool.

    Returns:
        In [0, 1]; 0 where no candidate is relevant.
    """
    k = int(share * len(relevance))
    discounts = 1 / np.maximum(np.log2(np.maximum(np.arange(1, k + 1), 2)), 1)  # (k,)
    best = np.sort(np.array(list(relevance.values()), float))[::-1][:k] @ discounts
    found = _mean_relevance(relevance, scores)[:k] @ discounts
    return float(found / best) if best else 0.0


def average_precision(
    relevance: Mapping[str, int], scores: Mapping[str, float], relevant_from: int = RELEVANT_FROM
) -> float:
    """Mean, over the relevant candidates of the whole pool, of the precision at their ranks.

    Among n equal candidates with r relevant ones, below N with R relevant ones, the
    i-th is relevant with probability r / n, and (i - 1)(r - 1) / (n - 1) of those
    above it in the group are then expected to be.

    Args:
        relevance: of each candidate.
        scores: of the same candidates, higher is better.
        relevant_from: the least relevance that counts.

    Returns:
        In [0, 1]; 0 where no candidate is relevant.
    """
    n_above, n_relevant_above, total = 0, 0, 0.0
    for group in _equal(scores):
        n, n_relevant = len(group), sum(relevance[name] >= relevant_from for name in group)
        places = np.arange(n)
        beside = places * (n_relevant - 1) / max(n - 1, 1)
        total += n_relevant / n * float(((n_relevant_above + 1 + beside) / (n_above + 1 + places)).sum())
        n_above, n_relevant_above = n_above + n, n_relevant_above + n_relevant
    return total / n_relevant_above if n_relevant_above else 0.0


def _mean_relevance(relevance: Mapping[str, int], scores: Mapping[str, float]) -> NDArray[np.float64]:
    """(n,) expected relevance at each rank."""
    groups = (([relevance[name] for name in group]) for group in _equal(scores))
    return np.concatenate([np.full(len(values), np.mean(values)) for values in groups])


def _equal(scores: Mapping[str, float]) -> list[list[str]]:
    """The candidates with the same score together, best first."""
    ordered = sorted(scores, key=lambda name: -scores[name])
    return [list(group) for _, group in groupby(ordered, key=scores.__getitem__)]
