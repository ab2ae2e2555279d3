"""Ways to damage a file, as disks, copies and people do; which files of an index there are to damage."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import numpy as np

PAGE_BYTES = 4096


class Damage(StrEnum):
    """What happens to a file."""

    TRUNCATED = "truncated"  # at a random length
    FLIPPED = "flipped"  # one bit of a random byte
    ZEROED = "zeroed"  # one page of 4 KiB
    EMPTIED = "emptied"
    DELETED = "deleted"


class FileKind(StrEnum):
    """A sort of file in an index folder."""

    CATALOG = "catalog"
    SEAL = "seal"
    SHARD = "shard"
    FLAT = "flat generation"
    IVF = "IVF generation"
    POSTINGS = "postings of words"
    REFERENCE = "reference"
    LOCK = "lock"
    LOG = "write-ahead log"  # while no writer closed the index
    SHARED_MEMORY = "shared memory of the log"


_PATTERNS = {
    FileKind.CATALOG: "catalog.sqlite",
    FileKind.SEAL: "catalog.sqlite.seal",
    FileKind.SHARD: "shards/*.safetensors",
    FileKind.FLAT: "ann/*/*.faiss",
    FileKind.IVF: "ann/*/*.faiss",
    FileKind.POSTINGS: "ann/*/words.safetensors",
    FileKind.REFERENCE: "reference/*.safetensors",
    FileKind.LOCK: "writer.lock",
    FileKind.LOG: "catalog.sqlite-wal",
    FileKind.SHARED_MEMORY: "catalog.sqlite-shm",
}


def choose_file(index: Path, kind: FileKind, rng: np.random.Generator) -> Path:
    """A random file of a kind."""
    files = sorted(index.glob(_PATTERNS[kind]))
    return files[int(rng.integers(len(files)))]


def inflict(path: Path, damage: Damage, rng: np.random.Generator) -> str:
    """Damage a file, and say how; an empty one can only be deleted, or stay as it is."""
    content = bytearray(path.read_bytes())
    size = len(content)
    if damage is Damage.DELETED:
        path.unlink()
        return "deleted"
    if not size:
        return "empty as it was"
    if damage is Damage.EMPTIED:
        path.write_bytes(b"")
        return f"emptied of {size} bytes"
    if damage is Damage.TRUNCATED:
        length = int(rng.integers(size))
        path.write_bytes(content[:length])
        return f"cut from {size} to {length} bytes"
    told = _flip(content, rng) if damage is Damage.FLIPPED else _zero(content, rng)
    path.write_bytes(content)
    return f"{told} of {size}"


def _flip(content: bytearray, rng: np.random.Generator) -> str:
    at, bit = int(rng.integers(len(content))), int(rng.integers(8))
    content[at] ^= 1 << bit
    return f"bit {bit} flipped at byte {at}"


def _zero(content: bytearray, rng: np.random.Generator) -> str:
    """Zero a page that is not zero already."""
    starts = [at for at in range(0, len(content), PAGE_BYTES) if any(content[at : at + PAGE_BYTES])]
    at = starts[int(rng.integers(len(starts)))] if starts else 0
    stop = min(at + PAGE_BYTES, len(content))
    content[at:stop] = bytes(stop - at)
    return f"bytes {at} to {stop} zeroed"
