"""Safetensors files without copies: written array by array, read as views of a memory map. Checks no digest."""

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
    """Write arrays, byte for byte as `safetensors.numpy.save_file` does, which copies all of them into memory first.

    Args:
        tensors: by name, of the types in `_DTYPES`.
        path: of the file; an existing file is replaced.
    """
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
