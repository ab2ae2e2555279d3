"""Moving documents inside the space that a corpus fills, without changing them inside. Pure array functions.

A copy of a corpus must not lie elsewhere than the corpus does: chunk vectors share a
strong mean direction and few directions hold most of their variance. So a copy is
turned only in planes of two neighbouring principal directions, whose variances are
nearly equal: the mean direction stays as it is, second moments stay as good as they
are, and, as a turn is orthogonal, so do all similarities inside of a document.

Letters in shapes: B documents, R rows of theirs, D width, P planes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors


@dataclass(frozen=True, slots=True)
class Planes:
    """An orthonormal basis: columns 2p and 2p + 1 span plane p; the mean direction, which never turns, is the last."""

    basis: Vectors  # (D, D) float32

    @property
    def n(self) -> int:
        """P: with an even D one direction beside the mean is left without a partner, that of least variance."""
        return (len(self.basis) - 1) // 2


def principal_planes(rows: Vectors) -> Planes:
    """Find the planes in which a corpus may be turned.

    Args:
        rows: (R, D) a sample of its chunk vectors, unit rows.
    """
    width = rows.shape[1]
    sample = rows.astype(np.float64)
    mean = sample.mean(axis=0)
    length = np.linalg.norm(mean)
    direction = mean / length if length > 0 else np.eye(width)[0]
    rest = sample - np.outer(sample @ direction, direction)
    # The mean direction is given a variance below all others, which sorts it last.
    second_moments = rest.T @ rest / len(rest) - np.outer(direction, direction)
    _, directions = np.linalg.eigh(second_moments)  # rising
    return Planes(np.ascontiguousarray(directions[:, ::-1], np.float32))


def turned(rows: Vectors, planes: Planes, angles: NDArray[np.floating], counts: NDArray[np.int64]) -> Vectors:
    """Turn the vectors of documents, each document by angles of its own.

    Costs 4 D^2 operations a row for the change of basis there and back, some 0.6
    million at width 384, and few more for the turning.

    Args:
        rows: (R, D) float32, the rows of each document beside each other.
        planes: from `principal_planes`.
        angles: (B, P) radians.
        counts: (B,) rows of each document; they sum to R.

    Returns:
        (R, D) float32, of the same lengths.
    """
    coordinates: Vectors = rows @ planes.basis
    # A plane's two coordinates are one complex number, and a turn is a product.
    in_planes = coordinates[:, : 2 * planes.n].view(np.complex64)
    in_planes *= np.repeat(np.exp(1j * angles).astype(np.complex64), counts, axis=0)
    back: Vectors = (coordinates @ planes.basis.T).astype(np.float32, copy=False)
    return back
