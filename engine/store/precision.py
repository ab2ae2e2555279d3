"""Vectors in float16 as shards hold them, in float32 as they are multiplied, and in one byte per number. Arrays only.

Letters in shapes: C rows, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
