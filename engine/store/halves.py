"""Converts vectors from float16, as shards hold them, to float32, as they are multiplied. Arrays only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_KEPT = np.int32(-0x70002000)  # 0x8fffe000: the sign, five bits of exponent, ten of fraction
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
        bits[block] &= _KEPT
        values[block] *= _REBIAS
    return values.reshape(halves.shape)
