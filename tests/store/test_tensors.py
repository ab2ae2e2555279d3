"""Files of arrays are those of safetensors, written without a copy of all arrays."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from engine.store import shards
from engine.store.shards import as_float32, coarse, map_file, mapped_tensors, save_file

TYPES = ("float16", "float32", "int8", "int32", "int64", "uint8", "uint16", "uint32")


def test_a_file_is_that_of_safetensors_byte_for_byte(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    tensors = {
        f"{name} {number}": draw.integers(0, 99, (3, number)).astype(name) for number in range(3) for name in TYPES
    }
    tensors["Größe"] = np.ones(1, np.float16)
    save_file(tensors, tmp_path / "ours")
    safetensors.numpy.save_file(tensors, tmp_path / "theirs")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    content = map_file(tmp_path / "ours")
    assert content is not None
    read = mapped_tensors(content)
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(read[name], tensor)


def test_a_transposed_array_is_written_in_the_order_of_its_rows(tmp_path: Path) -> None:
    turned = np.arange(6, dtype=np.int32).reshape(2, 3).T
    save_file({"turned": turned}, tmp_path / "x")
    np.testing.assert_array_equal(safetensors.numpy.load_file(tmp_path / "x")["turned"], turned)


def test_no_array_is_copied(tmp_path: Path) -> None:
    tensors = {name: np.zeros(4_000_000, np.uint8) for name in "abc"}
    tracemalloc.start()
    save_file(tensors, tmp_path / "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("block", [shards._BLOCK, 1_000])
def test_every_finite_half_is_the_same_number(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(shards, "_BLOCK", block)
    finite = ALL[np.isfinite(ALL)].reshape(-1, 2)
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
