"""Documents with the components of their scores, as a search narrows them down. Values and pure functions.

Letters in shapes: R documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.query import Prepared
from engine.scoring.evidence import COMPONENTS, Components, combine
from engine.store.snapshot import Positions


@dataclass(slots=True)
class Pool:
    """Documents with their components, whose similarities may be off in the last digits."""

    positions: Positions  # (R,)
    components: Components
    scores: NDArray[np.float64] = field(init=False)

    def rate(self, prepared: Prepared, root: float) -> Pool:
        """Combine the components; returns the pool itself."""
        self.scores = combine(self.components, prepared.weights, root)
        return self


def counts_of(pool: Pool) -> tuple[int, int]:
    """Documents with a score above 0, and those with a chunk above its threshold."""
    return int(np.count_nonzero(pool.scores > 0)), int(np.count_nonzero(pool.components.chunks))


def chosen(pool: Pool, at: NDArray[np.int64]) -> Pool:
    """Some documents of a pool."""
    chosen = Pool(pool.positions[at], pool.components.of(at))
    chosen.scores = pool.scores[at]
    return chosen


def without_positions(pool: Pool, positions: Positions) -> Pool:
    """A pool without some documents."""
    return chosen(pool, np.flatnonzero(~np.isin(pool.positions, positions)))


def joined(one: Pool, other: Pool, prepared: Prepared, root: float) -> Pool:
    """Two pools over different documents as one."""
    components = Components(
        *(np.concatenate([getattr(one.components, name), getattr(other.components, name)]) for name in COMPONENTS)
    )
    return Pool(np.concatenate([one.positions, other.positions]), components).rate(prepared, root)
