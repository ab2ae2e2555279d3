from __future__ import annotations

import numpy as np

from benchmarks.gaps.maps import removal, whitening


def _rows(n: int = 4_000) -> np.ndarray:
    draw = np.random.default_rng(0)
    return (draw.standard_normal((n, 6)) * [4, 2, 1, 1, 0.5, 0.25] + [3, 0, 0, 0, 0, 1]).astype(np.float32)


def test_full_whitening_makes_all_directions_alike() -> None:
    rows = _rows()
    white = whitening([rows], 0.5)
    covariance = np.cov(((rows - white.shift) @ white.matrix).T)
    np.testing.assert_allclose(covariance, np.eye(6), atol=0.02)


def test_half_of_it_takes_the_root_of_each_spread() -> None:
    rows = _rows()
    half = whitening([rows], 0.25)
    spread = ((rows - half.shift) @ half.matrix).std(axis=0)
    np.testing.assert_allclose(spread, np.sqrt(rows.std(axis=0)), rtol=0.02)


def test_power_zero_only_subtracts_the_mean() -> None:
    rows = _rows()
    centred = whitening([rows], 0.0)
    np.testing.assert_allclose(centred.matrix, np.eye(6), atol=1e-6)
    np.testing.assert_allclose(centred.shift, rows.mean(axis=0), atol=1e-4)


def test_corpora_count_the_same_whatever_their_size() -> None:
    one, other = _rows(100) + 1, _rows(4_000) - 1
    expected = (one.mean(axis=0) + other.mean(axis=0)) / 2
    np.testing.assert_allclose(whitening([one, other], 0.0).shift, expected, atol=1e-4)


def test_the_direction_of_largest_spread_is_removed() -> None:
    rows = _rows()
    mapped = removal([rows], 1)(rows)
    assert np.abs(mapped[:, 0]).max() < 0.2  # the direction is estimated
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-5)
