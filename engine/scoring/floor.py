"""The floor of an index: the scores that its unrelated documents reach, by the length of the query.

Letters in shapes: L lengths of queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = (50, 95, 99)  # percentiles of the scores of unrelated pairs


@dataclass(frozen=True, slots=True)
class Floor:
    """Percentiles of the scores of unrelated documents for a query of one length."""

    p50: float
    p95: float
    p99: float

    def level(self, score: float) -> int:
        """The highest of `LEVELS` that a score is above; 0 for a score above none."""
        return max((level for level in LEVELS if score > getattr(self, f"p{level}")), default=0)


@dataclass(frozen=True, slots=True)
class FloorTable:
    """The floor for queries of several lengths."""

    lengths: NDArray[np.int64]  # (L,) characters, rising
    scores: NDArray[np.float32]  # (L, 3) the percentiles `LEVELS`

    def at(self, n_characters: int) -> Floor:
        """The floor of a query, between the two nearest lengths on a logarithmic scale."""
        length = math.log(max(1, n_characters))
        known = np.log(self.lengths)
        return Floor(*(round(float(np.interp(length, known, column)), 6) for column in self.scores.T))
