"""From float16, as shards hold vectors, to float32, as they are multiplied. Arrays alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_KEPT = np.int32(-0x70002000)  # 0x8fffe000: the sign, five bits of exponent, ten of fraction
_REBIAS = np.float32(2.0**112)  # 127 - 15: the exponents of float32 begin so much lower
_ABOVE_FINITE = 65_536.0


def as_float32(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """The same values in float32, all of them exactly; numpy takes several times as long, one value after another.

    The bits of a half are moved to where float32 has them, and the exponent is set right by a product,
    which also makes small numbers that have no leading one into such that have it.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _KEPT
    values = bits.view(np.float32)
    values *= _REBIAS
    # Infinities and what is no number have come out as such numbers, which no half is.
    if values.max(initial=0) >= _ABOVE_FINITE or values.min(initial=0) <= -_ABOVE_FINITE:
        return halves.astype(np.float32)
    return values
