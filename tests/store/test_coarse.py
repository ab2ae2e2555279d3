"""Coarse rows are near the rows they were made of."""

from __future__ import annotations

import numpy as np
import pytest

from engine.store.coarse import coarse


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
