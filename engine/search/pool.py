"""Documents with the components of their scores, as a search narrows them down. Values and pure functions.

Letters in shapes: R documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.scoring.evidence import Components, combine
from engine.search.query import Prepared
from engine.store.snapshot import Positions


@dataclass(slots=True)
class Pool:
    """Documents with the components of their scores, which can be off in the last digits."""

    positions: Positions  # (R,)
    components: Components
    scores: NDArray[np.float64] = field(init=False)

    def rate(self, prepared: Prepared, root: float) -> Pool:
        """Combine the components; returns the pool itself."""
        self.scores = combine(self.components, prepared.weights, root)
        return self


def chosen(pool: Pool, at: NDArray[np.int64]) -> Pool:
    """Some documents of a pool."""
    chosen = Pool(pool.positions[at], pool.components.of(at))
    chosen.scores = pool.scores[at]
    return chosen


def without_positions(pool: Pool, positions: Positions) -> Pool:
    """A pool without some documents."""
    return chosen(pool, np.flatnonzero(~np.isin(pool.positions, positions)))
