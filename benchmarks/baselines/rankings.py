"""A ranking from a score for every target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Ranking


def ranking(doc_ids: Sequence[str], scores: NDArray[np.floating], k: int, *, own: int | None, least: float) -> Ranking:
    """The `k` best targets, best first, equal ones in the corpus's order.

    Args:
        doc_ids: N names.
        scores: (N,), higher is closer.
        k: depth.
        own: row of the target that has the query's own id, which is left out; None where there is none.
        least: only what scores more is found.
    """
    order = np.argsort(-scores, kind="stable")[: k + 1].tolist()
    found = [(doc_ids[row], float(scores[row])) for row in order if row != own and scores[row] > least]
    return found[:k]
