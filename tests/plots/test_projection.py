"""Projections are compared with the principal components of a full decomposition."""

import numpy as np
import pytest

from engine.plots import Points, project_vectors


def components(rows: Points) -> tuple[Points, tuple[float, float]]:
    """The scores on the two largest singular vectors of the centred rows, each axis up to its sign."""
    centred = rows - rows.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    shares = values**2 / (values**2).sum()
    return left[:, :2] * values[:2], (float(shares[0]), float(shares[1]))


def assert_same_axes(points: Points, expected: Points) -> None:
    for found, other in zip(points.T, expected.T, strict=True):
        sign = np.sign(found @ other)
        np.testing.assert_allclose(found, sign * other, atol=1e-6)


def test_vectors_are_projected_on_their_principal_components_and_the_larger_side_is_positive() -> None:
    rows = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32) * np.arange(8, 0, -1, dtype=np.float32)
    found, (points, shares) = project_vectors(rows), components(rows.astype(np.float64))
    assert_same_axes(found.points, points)
    assert found.shares == pytest.approx(shares)
    rows = np.random.default_rng(2).standard_normal((20, 4)).astype(np.float32)
    np.testing.assert_allclose(project_vectors(rows).points, project_vectors(rows[::-1]).points[::-1], atol=1e-9)


def test_a_document_of_the_map_is_placed_on_its_own_point() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 8)).astype(np.float32)
    projection = project_vectors(rows)
    np.testing.assert_allclose(projection.place(rows[7:8].astype(np.float64)), projection.points[7:8], atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_documents_have_points(n_rows: int) -> None:
    found = project_vectors(np.eye(3, dtype=np.float32)[:n_rows])
    assert found.points.shape == (n_rows, 2) and np.isfinite(found.points).all()
    assert all(0 <= share <= 1 + 1e-9 for share in found.shares)
