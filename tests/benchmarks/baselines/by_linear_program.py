"""Optimal transport between two texts as the linear program that defines it, with one equation for each occurrence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from benchmarks.baselines.word_vectors import WordVectors
from tests.benchmarks.baselines.small_words import vector_of

Vector = NDArray[np.float64]


def least_cost(
    first: str,
    second: str,
    vectors: WordVectors,
    cost: Callable[[Vector, Vector], float],
    weight: Callable[[Vector], float],
) -> float:
    """One variable for each pair of word occurrences, one equation for each occurrence."""
    one, other = (
        [vector_of(vectors, word) for word in text.split() if word in vectors.row] for text in (first, second)
    )
    supply, demand = (np.array([weight(x) for x in side]) for side in (one, other))
    moves = np.array([[cost(x, y) for y in other] for x in one])
    n, m = moves.shape
    leaving = np.kron(np.eye(n), np.ones(m))
    arriving = np.kron(np.ones(n), np.eye(m))
    solved = linprog(
        moves.ravel(),
        A_eq=np.vstack([leaving, arriving]),
        b_eq=np.concatenate([supply / supply.sum(), demand / demand.sum()]),
    )
    assert solved.status == 0
    return float(solved.fun)


def unit_distance(x: Vector, y: Vector) -> float:
    """WMD's cost between unit vectors."""
    return float(np.linalg.norm(x / np.linalg.norm(x) - y / np.linalg.norm(y)))


def angle(x: Vector, y: Vector) -> float:
    """WRD's cost."""
    return float(1 - x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))
