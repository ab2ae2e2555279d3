"""Immutable files of float16 vectors, one a committed batch, memory-mapped for reading.

Letters in shapes: N documents of a shard, S their sections, C their chunks, D width.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.encoders.encoder import EncodedDocument
from engine.store.durable import Checksum, write_durably

SHARD_FOLDER = "shards"
_DTYPES = {"F16": np.float16, "I32": np.int32}


@dataclass(frozen=True, slots=True)
class Shard:
    """The arrays of one shard, mapped from disk."""

    documents: NDArray[np.float16]  # (N, D)
    sections: NDArray[np.float16]  # (S, D)
    chunks: NDArray[np.float16]  # (C, D)
    spans: NDArray[np.int32]  # (C, 4): section in its document, start, stop, tokens


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


def open_shard(path: Path) -> Shard:
    """Map a shard whose checksum was already held against the catalog.

    The safetensors header is read here, not by its library, whose arrays are copies.
    """
    with path.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(header_size))

    def mapped(name: str) -> NDArray[np.generic]:
        about = header[name]
        first, _ = about["data_offsets"]
        shape = tuple(about["shape"])
        dtype = _DTYPES[about["dtype"]]
        if 0 in shape:
            return np.empty(shape, dtype)
        rows = np.memmap(path, dtype, "r", offset=8 + header_size + first, shape=shape)
        return rows.view(np.ndarray)  # the same mapping; indexing a memmap costs several times more

    return Shard(mapped("documents"), mapped("sections"), mapped("chunks"), mapped("spans"))  # type: ignore[arg-type]
