"""Asks a fitted scorer for its scores, and refuses those that are no numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DatasetError
from benchmarks.pairs.scorer import Pair, PairScorer


def finite_scores(scorer: PairScorer, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """(N,) scores to nine digits, so that what a record holds is what was judged.

    Raises:
        DatasetError: one is no finite number.
    """
    scores = scorer.score(pairs)
    if not np.all(np.isfinite(scores)):
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DatasetError(
            f"{scorer.name} gives {pairs[at].first} and {pairs[at].second} the score {scores[at]}, no finite number; "
            "leave this scorer out, or spend less on its training"
        )
    return np.array([float(f"{score:.9g}") for score in scores])
