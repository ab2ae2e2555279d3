"""Coarse rows are near the rows they were made of."""

from __future__ import annotations

import numpy as np
import pytest

from engine.store import precision
from engine.store.precision import as_float32, coarse

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_finite_half_is_the_same_number() -> None:
    finite = ALL[np.isfinite(ALL)]
    made = as_float32(finite)
    assert made.dtype == np.float32
    assert np.array_equal(made.view(np.uint32), finite.astype(np.float32).view(np.uint32))  # zeros by their sign, too


def test_infinities_and_nan_are_kept() -> None:
    assert np.array_equal(as_float32(ALL), ALL.astype(np.float32), equal_nan=True)
    for value in (np.inf, -np.inf, np.nan):
        assert np.array_equal(
            as_float32(np.array([1, value], np.float16)), np.array([1, value], np.float32), equal_nan=True
        )


def test_parts_of_arrays_and_empty_ones_are_taken() -> None:
    table = np.random.default_rng(0).standard_normal((7, 6)).astype(np.float16)
    table.flags.writeable = False
    assert np.array_equal(as_float32(table[::2, 1:4]), table[::2, 1:4].astype(np.float32))
    assert as_float32(np.empty((0, 6), np.float16)).shape == (0, 6)


def test_blocks_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_BLOCK", 1_000)
    finite = ALL[np.isfinite(ALL)].reshape(-1, 2)
    assert np.array_equal(as_float32(finite), finite.astype(np.float32))


@pytest.mark.parametrize(("n", "width"), [(5_000, 32), (3, 384), (0, 8)])
def test_similarities_to_coarse_rows_are_near(n: int, width: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, width))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    query = rng.standard_normal(width)
    query /= np.linalg.norm(query)
    kept = coarse(rows)
    assert len(kept) == n and kept.steps.nbytes == n * width
    largest = np.abs(rows.astype(float)).max(initial=0)
    assert (np.abs(kept.as_float32() - rows.astype(float)) <= 0.6 * largest / 127).all()
    np.testing.assert_allclose(
        kept.as_float32() @ query, rows.astype(float) @ query, atol=0.012 if width == 32 else 0.002
    )


def test_a_row_is_as_similar_to_itself_as_before() -> None:
    rows = np.random.default_rng(1).standard_normal((200, 24))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    wide = rows.astype(np.float32)
    own = (coarse(rows).as_float32() * wide).sum(axis=1)
    np.testing.assert_allclose(own, (wide * wide).sum(axis=1), atol=5e-7)


def test_a_row_of_zeros_stays_zeros() -> None:
    assert not coarse(np.zeros((2, 4), np.float16)).as_float32().any()
