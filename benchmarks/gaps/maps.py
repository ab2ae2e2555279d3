"""Maps of chunk vectors: linear ones, and those that need no queries. Pure array functions.

Letters in shapes: n rows, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors, unit

SAMPLE = 20_000  # chunks of each corpus that directions are taken from


@dataclass(frozen=True)
class LinearMap:
    """x becomes (x - shift) matrix, of unit length."""

    matrix: Vectors  # (D, D)
    shift: Vectors  # (D,)

    def __call__(self, rows: Vectors) -> Vectors:
        """Map (n, D) rows."""
        mapped: Vectors = ((rows - self.shift) @ self.matrix).astype(np.float32)
        return unit(mapped)


def unchanged(rows: Vectors) -> Vectors:
    """The map that changes nothing: rows (n, D) keep the length that they are stored with."""
    return rows


def whitening(chunks: Sequence[Vectors], power: float, *, seed: int = 0) -> LinearMap:
    """Shrink the directions in which chunks vary most: by eigenvalue^-power of their covariance.

    Args:
        chunks: of each corpus (C, D); each counts the same.
        power: 0 only subtracts the mean; .5 makes all directions alike.
        seed: of the chunks that are read.
    """
    mean, values, directions = _directions(chunks, seed)
    scale = np.maximum(values, 1e-6 * values[-1]) ** -power
    return LinearMap(((directions * scale) @ directions.T).astype(np.float32), mean.astype(np.float32))


def removal(chunks: Sequence[Vectors], n_directions: int, *, seed: int = 0) -> LinearMap:
    """Subtract the mean, and remove the directions in which chunks vary most (Mu & Viswanath 2018, arXiv:1702.01417).

    Args:
        chunks: of each corpus (C, D); each counts the same.
        n_directions: that are removed.
        seed: of the chunks that are read.
    """
    mean, _, directions = _directions(chunks, seed)
    kept = directions[:, : directions.shape[1] - n_directions]
    return LinearMap((kept @ kept.T).astype(np.float32), mean.astype(np.float32))


def _directions(
    chunks: Sequence[Vectors], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean (D,), eigenvalues (D,), rising, and eigenvectors (D, D) as columns, of corpora that count the same."""
    draw = np.random.default_rng(seed)
    parts = [one[draw.permutation(len(one))[:SAMPLE]].astype(np.float64) for one in chunks]
    mean = np.mean([part.mean(axis=0) for part in parts], axis=0)
    covariance = np.mean([(part - mean).T @ (part - mean) / len(part) for part in parts], axis=0)
    values, directions = np.linalg.eigh(covariance)
    return mean, values, directions
