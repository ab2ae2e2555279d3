"""Files of arrays are those of safetensors, written without a copy of all arrays."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import safetensors.numpy

from engine.store.tensors import map_file, mapped_tensors, save_file

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
