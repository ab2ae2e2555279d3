from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.scaling.turning import Planes, principal_planes, turned
from engine.encoders.encoder import Vectors, unit


@pytest.fixture
def rows() -> Vectors:
    rng = np.random.default_rng(0)
    return unit((rng.standard_normal((50, 8)) / np.arange(1, 9) + [1, 0, 0, 0, 0, 0, 0, 1]).astype(np.float32))


def turned_by_hand(rows: Vectors, planes: Planes, angles: NDArray[np.float64]) -> Vectors:
    """One plane at a time, by its rotation matrix."""
    for plane, angle in enumerate(angles):
        two = planes.basis[:, 2 * plane : 2 * plane + 2]
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        rows = rows - rows @ two @ two.T + rows @ two @ turn @ two.T
    return rows


def test_planes_are_orthonormal_and_leave_the_mean_direction_out(rows: Vectors) -> None:
    planes = principal_planes(rows)
    mean = rows.mean(0) / np.linalg.norm(rows.mean(0))
    np.testing.assert_allclose(planes.basis.T @ planes.basis, np.eye(8), atol=1e-5)
    assert abs(planes.basis[:, -1] @ mean) == pytest.approx(1, abs=1e-5)
    variances = (rows @ planes.basis[:, :-1]).var(0)
    assert (np.diff(variances) < 1e-6).all() and planes.n == 3


def test_each_document_turns_by_its_own_angles(rows: Vectors) -> None:
    planes, counts = principal_planes(rows), np.array([20, 30])
    angles = np.random.default_rng(1).standard_normal((2, planes.n))
    by_hand = [turned_by_hand(part, planes, angle) for part, angle in zip((rows[:20], rows[20:]), angles, strict=True)]
    np.testing.assert_allclose(turned(rows, planes, angles, counts), np.concatenate(by_hand), atol=1e-5)


def test_a_turn_keeps_lengths_similarities_and_what_lies_along_the_mean(rows: Vectors) -> None:
    planes = principal_planes(rows)
    moved = turned(rows, planes, np.full((1, planes.n), 2.0), np.array([50]))
    np.testing.assert_allclose(moved @ moved.T, rows @ rows.T, atol=1e-5)
    np.testing.assert_allclose(moved @ planes.basis[:, -1], rows @ planes.basis[:, -1], atol=1e-5)
    assert np.abs(moved - rows).max() > 0.1
