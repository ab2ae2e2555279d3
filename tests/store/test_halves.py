from __future__ import annotations

import numpy as np
import pytest

from engine.store import halves
from engine.store.halves import as_float32

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
    monkeypatch.setattr(halves, "_BLOCK", 1_000)
    finite = ALL[np.isfinite(ALL)].reshape(-1, 2)
    assert np.array_equal(as_float32(finite), finite.astype(np.float32))
