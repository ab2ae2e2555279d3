"""nDCG of scores with ties: the mean over all orders of what is equal; computed by scikit-learn, not by us."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from engine.errors import MissingExtra


def require_scikit_learn() -> None:
    """Look for scikit-learn, to be called before long work.

    Raises:
        MissingExtra: it is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtra("nDCG over ties", "scikit-learn", "benchmarks")


def tied_ndcg(relevance: Mapping[str, int], scores: Mapping[str, float], k: int) -> float:
    """nDCG@k over the judged candidates of one query.

    Parts of a score are 0 for most candidates, and an arbitrary order of these
    would be noise, or an advantage: equal scores share their gains (McSherry &
    Najork 2008). Gain 2^relevance - 1 and discount log2(rank + 1), as
    `benchmarks.metrics` has them, whose value it is where nothing is tied.

    Args:
        relevance: of each candidate, at least 0; at least two candidates.
        scores: of the same candidates, higher is better.
        k: ranks that count.

    Returns:
        In [0, 1]; 0 where no candidate is relevant.
    """
    from sklearn.metrics import ndcg_score

    gains = [[2**value - 1 for value in relevance.values()]]
    return float(ndcg_score(gains, [[scores[name] for name in relevance]], k=k))
