"""Files and folders that appear complete or not at all, checksums of files, and safetensors files without copies.

What a killed run left is removed by the next one.

Vectors are float16 in shards, float32 where they are multiplied, and one byte a number in samples.
Letters in shapes: C rows, D width.
"""

from __future__ import annotations

import errno
import json
import math
import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch, faults_named

_BYTES_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class Checksum:
    """The size and xxh3-128 digest that a file must have."""

    size_bytes: int
    digest: str  # 32 hexadecimal digits


def checksum(path: Path) -> Checksum:
    """Read a file once and compute its checksum.

    Raises:
        OSError: it cannot be read.
    """
    digest = xxhash.xxh3_128()
    size = 0
    block = memoryview(bytearray(_BYTES_AT_A_TIME))
    # Read into one block that stays in the processor's cache.
    with path.open("rb", buffering=0) as stream:
        while n_read := stream.readinto(block):
            digest.update(block[:n_read])
            size += n_read
    return Checksum(size, digest.hexdigest())


def is_loss(error: OSError) -> bool:
    """Whether a file is missing or its disk is damaged; any other error can be temporary, and the file intact."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)


def check_mapped(content: mmap.mmap | None, path: Path, expected: Checksum) -> mmap.mmap:
    """Compare a mapped file with its checksum, before anything parses it; None stands for a missing file.

    Raises:
        IndexDamaged: missing, or another size or digest than expected.
    """
    there = check_size(content, path, expected)
    _compare(path, Checksum(len(there), xxhash.xxh3_128_hexdigest(there)), expected)
    return there


def check_size(content: mmap.mmap | None, path: Path, expected: Checksum) -> mmap.mmap:
    """Return a mapped file that exists and has the expected size; errors as in `check_mapped`."""
    if content is None:
        raise IndexDamaged(f"{path} is missing, unreadable or empty; repair it: longmatch upkeep repair INDEX")
    _compare(path, Checksum(len(content), expected.digest), expected)
    return content


def check_file(path: Path, expected: Checksum) -> None:
    """Compare a file with its checksum without mapping it; errors as in `check_mapped`."""
    try:
        _compare(path, Checksum(path.stat().st_size, expected.digest), expected)
        _compare(path, checksum(path), expected)
    except OSError as error:
        if not is_loss(error):
            raise
        raise IndexDamaged(
            f"{path} cannot be read ({error.strerror}); repair it: longmatch upkeep repair INDEX"
        ) from error


def check_part(content: mmap.mmap, start: int, stop: int, path: Path, digest: str) -> None:
    """Compare bytes `start` to `stop` of a mapped file with their digest, before anything parses them.

    Raises:
        IndexDamaged: another digest than expected.
    """
    found = xxhash.xxh3_128_hexdigest(memoryview(content)[start:stop])
    if found != digest:
        raise IndexDamaged(
            f"{path} has checksum {found[:12]} in bytes {start} to {stop}, not {digest[:12]}; "
            "repair it: longmatch upkeep repair INDEX"
        )


def _compare(path: Path, found: Checksum, expected: Checksum) -> None:
    if found.size_bytes != expected.size_bytes:
        what = f"{found.size_bytes} bytes, not {expected.size_bytes}"
    elif found != expected:
        what = f"checksum {found.digest[:12]}, not {expected.digest[:12]}"
    else:
        return
    raise IndexDamaged(f"{path} has {what}; repair it: longmatch upkeep repair INDEX")


def write_durably(path: Path, write: Callable[[Path], object]) -> Checksum:
    """Make a file appear at `path` complete and on disk, or not at all; `write` writes all of it to another path."""
    unfinished = path.with_name(path.name + ".tmp")
    with faults_named(str(path)):  # the error of a full or failing disk names no file
        write(unfinished)
        # safetensors makes files that only their owner can read; an index is as readable as its folder.
        unfinished.chmod(path.parent.stat().st_mode & 0o666)
        written = checksum(unfinished)
        _fsync(unfinished)
        unfinished.replace(path)
        fsync_folder(path.parent)
    return written


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can (not on Windows)."""
    if os.name == "posix":
        _fsync(folder)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def unfinished_folder(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` to write into, which is removed at the end.

    A lock file beside the folder marks it as ours, so that a run after a killed one removes it.

    Raises:
        IndexMismatch: a folder of something else has its name.
        IndexBusy: another process writes there.
    """
    from filelock import FileLock, Timeout  # loads asyncio, which a search does not need

    folder, lock_file = (out.with_name(f"{out.name}{suffix}") for suffix in (".unfinished", ".unfinished.lock"))
    if folder.exists() and not lock_file.exists():
        raise IndexMismatch(f"{folder} is in the way; move it away, then run the command again")
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise IndexBusy(f"another process writes {folder}; wait for it to end") from None
    try:
        fsync_folder(out.parent)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():  # otherwise the lock file marks the folder for a later run
            lock_file.unlink(missing_ok=True)
        lock.release()


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` on success; see `unfinished_folder`. `out` may be an empty folder."""
    with unfinished_folder(out) as folder:
        yield folder
        if out.exists():
            out.rmdir()
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():  # what is written into a folder syncs its files, not the name of the folder
                fsync_folder(path)
        folder.rename(out)
        fsync_folder(out.parent)


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
_NUMBERS_AT_A_TIME = 1 << 17  # numbers at a time: they stay in the processor's cache between steps


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
    for first in range(0, len(flat), _NUMBERS_AT_A_TIME):
        block = slice(first, first + _NUMBERS_AT_A_TIME)
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
