"""Immutable files of float16 vectors, one a committed batch, memory-mapped for reading.

Letters in shapes: N documents of a shard, S their sections, C their chunks, D width.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.encoders.encoder import EncodedDocument
from engine.store.durable import Checksum, check_mapped, write_durably

SHARD_FOLDER = "shards"
_DTYPES = {"F16": np.float16, "I32": np.int32}


@dataclass(frozen=True, slots=True)
class Shard:
    """The arrays of one shard, mapped from disk."""

    documents: NDArray[np.float16]  # (N, D)
    sections: NDArray[np.float16]  # (S, D)
    chunks: NDArray[np.float16]  # (C, D)
    spans: NDArray[np.int32]  # (C, 4): section in its document, start, stop, tokens


class ShardSet:
    """The shards that one reader is pinned to: all mapped at once, each checked and parsed at first use."""

    def __init__(self, folder: Path, written: Mapping[int, tuple[str, Checksum]]) -> None:
        """Map the shards of an index folder, given their files and checksums by number."""
        self._written = {number: (folder / file, expected) for number, (file, expected) in written.items()}
        self._mapped = {number: map_file(path) for number, (path, _) in self._written.items()}
        self._parsed: dict[int, Shard] = {}

    @property
    def is_whole(self) -> bool:
        """Whether all files were there."""
        return all(content is not None for content in self._mapped.values())

    def __getitem__(self, number: int) -> Shard:
        """A shard's arrays.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        if number not in self._parsed:
            content = self._mapped[number]
            check_mapped(content, *self._written[number])
            assert content is not None
            self._parsed[number] = parse_shard(content)
        return self._parsed[number]


def shard_arrays(encoded: Sequence[EncodedDocument]) -> Shard:
    """Lay the vectors of documents one after another, as they will stand in a shard."""
    spans = [(span.section, span.start, span.stop, span.n_tokens) for one in encoded for span in one.chunk_spans]
    return Shard(
        documents=np.stack([one.document for one in encoded]).astype(np.float16),
        sections=np.concatenate([one.sections for one in encoded]).astype(np.float16),
        chunks=np.concatenate([one.chunks for one in encoded]).astype(np.float16),
        spans=np.array(spans, np.int32).reshape(-1, 4),
    )


def shard_file(number: int) -> str:
    """Name of a shard relative to the index folder."""
    return f"{SHARD_FOLDER}/{number:06d}.safetensors"


def write_shard(path: Path, shard: Shard) -> Checksum:
    """Write a shard durably; it belongs to the index only when the catalog names it."""
    tensors: dict[str, NDArray[Any]] = {
        "documents": shard.documents,
        "sections": shard.sections,
        "chunks": shard.chunks,
        "spans": shard.spans,
    }
    return write_durably(path, lambda unfinished: save_file(tensors, unfinished))


def map_file(path: Path) -> mmap.mmap | None:
    """Map a file for reading, so that it stays readable when its name goes; None if it is not there or empty."""
    try:
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None


def parse_shard(content: mmap.mmap) -> Shard:
    """View a mapped shard, whose checksum was already held against the catalog, as arrays.

    The safetensors header is read here, not by its library, whose arrays are copies.
    """
    header_size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + header_size])

    def mapped(name: str) -> NDArray[np.generic]:
        about = header[name]
        first, _ = about["data_offsets"]
        shape = tuple(about["shape"])
        dtype = _DTYPES[about["dtype"]]
        return np.frombuffer(content, dtype, math.prod(shape), 8 + header_size + first).reshape(shape)

    return Shard(mapped("documents"), mapped("sections"), mapped("chunks"), mapped("spans"))  # type: ignore[arg-type]
