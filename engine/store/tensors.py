"""Safetensors files without copies: written array by array, read as views of a memory map. Checks no digest.

Vectors are float16 in shards, float32 where they are multiplied, and one byte a number in samples.
Letters in shapes: C rows, D width.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.store.durable import is_loss

_DTYPES: dict[str, type[np.generic]] = {
    "F16": np.float16,
    "F32": np.float32,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
}
_FILE_ORDER = ("I64", "F32", "U32", "I32", "F16", "U16", "I8", "U8")  # of safetensors, so that every array is aligned


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies in a file."""

    dtype: type[np.generic]
    shape: tuple[int, ...]
    start: int
    stop: int

    def view(self, content: mmap.mmap) -> NDArray[Any]:
        """The tensor as an array that views the map."""
        return np.frombuffer(content, self.dtype, math.prod(self.shape), self.start).reshape(self.shape)


def save_file(tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays, byte for byte as `safetensors.numpy.save_file` does, which copies all of them into memory first."""
    names = {np.dtype(of): name for name, of in _DTYPES.items()}
    order = sorted(tensors, key=lambda name: (_FILE_ORDER.index(names[tensors[name].dtype]), name))
    header, stop = dict[str, Any](), 0
    for name in order:
        array, start = tensors[name], stop
        stop = start + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    with path.open("wb") as stream:
        stream.write(len(written).to_bytes(8, "little"))
        stream.write(written)
        for name in order:
            stream.write(np.ascontiguousarray(tensors[name]).data)


def map_file(path: Path) -> mmap.mmap | None:
    """Map a file for reading, so that it stays readable after it is deleted; None if it is lost or empty.

    Raises:
        OSError: the file exists, but the system refuses to open it.
    """
    try:
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        return None
    except OSError as error:
        if not is_loss(error):
            raise
        return None


def header_stop(content: mmap.mmap) -> int:
    """Bytes of the header, the length in front of it included."""
    return 8 + int.from_bytes(content[:8], "little")


def read_header(content: mmap.mmap) -> dict[str, Tensor]:
    """The tensors of a file by name; parsed here, because the arrays of safetensors are copies."""
    stop = header_stop(content)
    header = json.loads(content[8:stop])
    return {
        name: Tensor(
            _DTYPES[entry["dtype"]], tuple(entry["shape"]), *(stop + offset for offset in entry["data_offsets"])
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def mapped_tensors(content: mmap.mmap) -> dict[str, NDArray[Any]]:
    """All arrays of a file whose checksum was already compared."""
    return {name: tensor.view(content) for name, tensor in read_header(content).items()}


_SIGNIFICANT = np.int32(-0x70002000)  # 0x8fffe000: the sign, five bits of exponent, ten of fraction
_REBIAS = np.float32(2.0**112)  # 127 - 15, the difference between the exponent biases of float32 and float16
_INFINITE = 0x7C00  # bits of a half from here on are infinity or NaN
_MINUS_INFINITE = 0xFC00
_BLOCK = 1 << 17  # numbers at a time: they stay in the processor's cache between steps


def as_float32(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """The same values in float32, all of them exactly; numpy takes up to several times as long.

    The bits of a half are shifted to their places in float32. A product corrects the exponent, and also
    normalizes subnormal numbers.
    """
    flat = np.ascontiguousarray(halves).reshape(-1)
    signed, unsigned = flat.view(np.int16), flat.view(np.uint16)
    if signed.max(initial=0) >= _INFINITE or unsigned.max(initial=0) >= _MINUS_INFINITE:
        return halves.astype(np.float32)
    values = np.empty(len(flat), np.float32)
    bits = values.view(np.int32)
    for first in range(0, len(flat), _BLOCK):
        block = slice(first, first + _BLOCK)
        np.left_shift(signed[block], 13, out=bits[block], dtype=np.int32)
        bits[block] &= _SIGNIFICANT
        values[block] *= _REBIAS
    return values.reshape(halves.shape)


_MOST = 127  # of an int8, on both sides of 0
_ROWS_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class CoarseRows:
    """Rows as integers times a scale; similarities to them are off by under 0.002 for unit rows 384 wide."""

    steps: NDArray[np.int8]  # (C, D)
    scales: NDArray[np.float32]  # (C,)

    def __len__(self) -> int:
        """C."""
        return len(self.steps)

    def as_float32(self) -> NDArray[np.float32]:
        """(C, D) the rows, each number exactly the product of its step and the scale of its row."""
        rows = self.steps.astype(np.float32)
        rows *= self.scales[:, None]
        return rows


def coarse(rows: NDArray[np.float16]) -> CoarseRows:
    """Round each row to 127 steps up to its largest number; rows of zeros stay zeros.

    The scale of a row is chosen so that the inner product of the rounded row with the original equals the squared
    norm of the original. So a passage that many documents share has the same similarity to itself here as in a shard.
    """
    steps, scales = np.empty(rows.shape, np.int8), np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = slice(first, first + _ROWS_AT_ONCE)
        wide = rows[block].astype(np.float64)
        largest = np.abs(wide).max(axis=1, initial=0)
        whole = np.rint(wide * (_MOST / np.where(largest > 0, largest, 1))[:, None])
        products = np.einsum("cd,cd->c", whole, wide)
        scales[block] = np.einsum("cd,cd->c", wide, wide) / np.where(products > 0, products, 1)
        steps[block] = whole
    return CoarseRows(steps, scales)
