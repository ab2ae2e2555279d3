"""What it costs to move the words of one document onto those of another, and what it costs at least. Pure functions.

Letters in shapes: V words with a vector, n and m words of two documents, N documents, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.extra_packages import optional
from benchmarks.baselines.word_bags import WordBag
from engine.errors import EngineError

Floats = NDArray[np.float64]
_PIVOTS = 10_000_000  # of the simplex; POT's own limit stops it at documents of some thousand words
_BLOCK = 4096  # words whose distances to a query are in memory at once


class TransportError(EngineError):
    """Raised when the cost of moving words was not found."""


@dataclass(frozen=True)
class Ground:
    """Where words lie, how heavy a word is, and what it costs to move it.

    Moving over a distance d costs f(d), for an f that is 0 at 0, rises and is convex.
    """

    points: NDArray[np.float32]  # (V, D)
    weights: Floats  # (V,) above 0; the mass of a word is this times its count
    cost: Callable[[Floats], Floats]  # f
    farthest: float  # no two words cost more


@dataclass(frozen=True)
class Mass:
    """The words of a document as mass on the ground."""

    rows: NDArray[np.int64]  # (n,) of the points
    shares: Floats  # (n,) sum 1; nothing where a document has no known word


def mass_of(bag: WordBag, ground: Ground, most: int | None) -> Mass:
    """Spread a document over the ground; of more than `most` words the heaviest are kept, of equal ones the first."""
    heavy = bag.counts * ground.weights[bag.rows]
    kept = np.sort(np.argsort(-heavy, kind="stable")[:most])
    return Mass(bag.rows[kept], heavy[kept] / heavy[kept].sum())


def costs(ground: Ground, one: Mass, other: Mass) -> Floats:
    """(n, m) costs of moving each word of one document onto each of another."""
    return ground.cost(_distances(_at(ground, one.rows), _at(ground, other.rows)))


def transport(moves: Floats, one: Mass, other: Mass) -> float:
    """The least cost of moving one document onto another, by POT's network simplex.

        min_T sum_ij T_ij c_ij,  T >= 0,  sum_j T_ij = p_i,  sum_i T_ij = q_j

    Args:
        moves: (n, m) the costs c.
        one: with the shares p.
        other: with the shares q.

    Raises:
        MissingExtra: POT is not installed.
        TransportError: the simplex did not end.
    """
    emd2 = optional("ot", "optimal transport", "POT").emd2
    cost, log = emd2(one.shares, other.shares, np.ascontiguousarray(moves), numItermax=_PIVOTS, log=True)
    if log["warning"] is not None:
        raise TransportError(
            f"moving {moves.shape[0]} words onto {moves.shape[1]} did not end in {_PIVOTS:,} pivots "
            f"({log['warning']}); lower max_words"
        )
    return float(cost)


def relaxed(moves: Floats, one: Mass, other: Mass) -> float:
    """A cost that `transport` is not below: each word goes to its nearest, on either side.

    RWMD of Kusner et al. (2015), section 4: one of the two constraints is dropped, the
    larger of both minima counts. It holds for any costs.
    """
    return float(max(one.shares @ moves.min(axis=1), other.shares @ moves.min(axis=0)))


class Lowest:
    """Costs that moving a document onto each one of a corpus is not below, for all of them at once."""

    def __init__(self, ground: Ground, masses: Sequence[Mass]) -> None:
        """Take the documents of a corpus, those without words too."""
        self._ground = ground
        self._centroids = np.stack([mass.shares @ _at(ground, mass.rows) for mass in masses])  # (N, D)
        flat = np.concatenate([mass.rows for mass in masses])
        self._used, self._places = np.unique(flat, return_inverse=True)
        self._shares = np.concatenate([mass.shares for mass in masses])
        self._owners = np.repeat(np.arange(len(masses)), [len(mass.rows) for mass in masses])

    def __call__(self, query: Mass) -> Floats:
        """(N,) the larger of two bounds.

        The centroids (WCD of Kusner et al., where f(d) = d): by Jensen's inequality
        sum_ij T_ij f(|x_i - y_j|) >= f(|sum_i p_i x_i - sum_j q_j y_j|). And one side of
        `relaxed`: each word of a target goes to its nearest in the query.
        """
        points = _at(self._ground, query.rows)
        centroid = query.shares @ points
        apart = self._ground.cost(np.linalg.norm(self._centroids - centroid, axis=1))
        nearest = np.empty(len(self._used))
        for first in range(0, len(self._used), _BLOCK):
            block = slice(first, first + _BLOCK)
            nearest[block] = _distances(points, _at(self._ground, self._used[block])).min(axis=0)
        moved = self._shares * self._ground.cost(nearest)[self._places]
        return np.maximum(apart, np.bincount(self._owners, moved, minlength=len(self._centroids)))


def _at(ground: Ground, rows: NDArray[np.int64]) -> Floats:
    # Distances of near words are lost to cancellation in float32.
    return ground.points[rows].astype(np.float64)


def _distances(one: Floats, other: Floats) -> Floats:
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T  # (n, m)
    distances: Floats = np.sqrt(np.maximum(squares, 0))
    return distances
