"""Messages between a search and its partitions: a JSON header and arrays of safetensors, in one frame of bytes.

    bytes 0 to 7    LMFRAME1
    bytes 8 to 15   length of the header, little endian
    then            the header, JSON in UTF-8
    then            the arrays, as a file of safetensors

No pickle: a frame can hold nothing but plain values. Lengths are compared with the bytes received, and with limits,
before anything is parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

_MAGIC = b"LMFRAME1"
_HEAD = 16  # bytes before the header
MOST_BYTES = 1 << 29  # of a frame


class FrameError(ValueError):
    """Bytes that are not a frame, or a frame with unexpected values."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The values of a message."""

    head: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def array(self, name: str, dtype: type[np.generic], shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of a known type and shape.

        Args:
            name: of the array.
            dtype: its type.
            shape: its shape; None for an extent of any length.

        Raises:
            FrameError: the array is missing, has another type or shape, or holds a number that is not finite.
        """
        found = self.arrays.get(name)
        if found is None:
            raise FrameError(f"array {name!r} is missing")
        is_shape = found.ndim == len(shape) and all(
            wanted is None or wanted == extent for wanted, extent in zip(shape, found.shape, strict=True)
        )
        if found.dtype != dtype or not is_shape:
            raise FrameError(f"array {name!r} is {found.dtype} {found.shape}, not {np.dtype(dtype)} {shape}")
        if np.issubdtype(dtype, np.floating) and not np.isfinite(found).all():
            raise FrameError(f"array {name!r} holds a number that is not finite")
        return found

    def value(self, name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:  # noqa: ANN401
        """A value of the header.

        Raises:
            FrameError: the value is missing, or has another type.
        """
        found = self.head.get(name)
        is_number = isinstance(found, bool) and kind in (int, float, (int, float))
        if not isinstance(found, kind) or is_number:
            raise FrameError(f"{name!r} is {type(found).__name__}")
        return found

    def count(self, name: str, most: int = 1 << 53) -> int:
        """A whole number of the header from 0 to `most`.

        Raises:
            FrameError: the value is not such a number.
        """
        found: int = self.value(name, int)
        if not 0 <= found <= most:
            raise FrameError(f"{name!r} is {found}; it must be from 0 to {most:,}")
        return found


def pack(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """A frame as bytes.

    Args:
        head: plain values.
        arrays: numbers of any type that numpy has; copied in C order.
    """
    header = json.dumps(head, ensure_ascii=False, allow_nan=False).encode()
    tensors = {name: np.ascontiguousarray(one) for name, one in (arrays or {}).items()}
    return b"".join([_MAGIC, len(header).to_bytes(8, "little"), header, save(tensors)])


def unpack(content: bytes) -> Frame:
    """The frame that was packed.

    Raises:
        FrameError: the bytes are not a frame, or are cut off.
    """
    if len(content) < _HEAD or content[:8] != _MAGIC:
        raise FrameError("the message is no frame of this version of longmatch")
    stop = _HEAD + int.from_bytes(content[8:_HEAD], "little")
    if stop > len(content):
        raise FrameError(f"the frame is cut off: {len(content):,} bytes of at least {stop:,}")
    try:
        head = json.loads(content[_HEAD:stop])
        arrays = load(content[stop:])
    except (ValueError, RecursionError, SafetensorError, KeyError) as error:
        raise FrameError(f"the frame cannot be read ({error})") from error
    if not isinstance(head, dict):
        raise FrameError("the header of the frame is no object")
    return Frame(head, arrays)
