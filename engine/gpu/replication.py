"""Copies lists of a snapshot onto GPUs, where its vectors do not fit: chooses the type that does, and fills it.

It uses the first of these types that fits into memory and that GPU FAISS accepts:

1. The published generation itself, if a GPU can hold its type; one GPU only.
2. The lists of the generation with codes of 16, then of 8 bits, computed from the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.encoders.encoder import Vectors
from engine.gpu.gpus import RESERVED_BYTES, FaissGpus, can_clone, centroids, list_parts, lists_of
from engine.store.ann import Ids
from engine.store.replica import MOST, OpenReplica, Part, Replica
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions
from engine.words.apart import ranges

BLOCK_CHUNKS = 65_536
SAMPLE_CHUNKS = 65_536
_HALVES, _BYTES = "QT_fp16", "QT_8bit"
_LIST_GROWTH = 1.5  # lists on a GPU are reallocated as they grow, and have spare capacity


@dataclass(frozen=True, slots=True)
class IndexOption:
    """A type of replica."""

    name: str
    size_bytes: int  # peak on all GPUs together, while it is filled
    make: Callable[[], OpenReplica]


def replicate(snapshot: IndexSnapshot, gpus: FaissGpus) -> tuple[OpenReplica | None, str]:
    """Copy an index onto GPUs: the replica and its summary, or None and the reason.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    room = len(gpus.numbers) * (min(map(gpus.free_bytes, gpus.numbers)) - RESERVED_BYTES)
    refused: list[str] = []
    for option in options(snapshot, gpus):
        if option.size_bytes > room:
            refused.append(f"{option.name} wants {_gib(option.size_bytes)}")
            continue
        try:
            replica = option.make()
            return replica, replica.summary
        except RuntimeError as error:
            refused.append(f"{option.name} was refused ({str(error).splitlines()[-1].strip()[-120:]})")
    if not refused:
        return None, "the index has no lists that a GPU can hold"
    return None, f"there is room for {_gib(max(0, room))}; {', '.join(refused)}"


def options(snapshot: IndexSnapshot, gpus: FaissGpus) -> list[IndexOption]:
    """The possible types of replica, best first."""
    n, width = snapshot.n_chunks, snapshot.width
    generation = snapshot.generation
    lists = None if generation is None else lists_of(generation.ann.inner, width)
    if generation is None or lists is None or generation.ann.nprobe > MOST:
        return []
    of_lists = []
    if can_clone(lists) and len(gpus.numbers) == 1:
        row = snapshot.generation_row
        assert row is not None
        cloned = int(_LIST_GROWTH * row.size_bytes)
        of_lists.append(IndexOption("the generation as it is", cloned, partial(_clone, generation, gpus)))
    for code, code_bytes in ((_HALVES, 2 * width), (_BYTES, width)):
        size = int(_LIST_GROWTH * n * (code_bytes + 8)) + len(gpus.numbers) * 4 * width * generation.ann.n_lists
        name = f"its lists with {8 * code_bytes // width} bits a number"
        of_lists.append(IndexOption(name, size, partial(_lists, snapshot, generation, gpus, code)))
    return of_lists


def _clone(generation: OpenGeneration, gpus: FaissGpus) -> OpenReplica:
    (number,) = gpus.numbers
    ann = generation.ann
    before = gpus.free_bytes(number)
    part = Part(gpus.place(ann.inner, number), number)
    size = max(0, before - gpus.free_bytes(number))
    replica = Replica([part], nprobe=ann.nprobe, n_lists=ann.n_lists)
    return _opened(replica, generation.through_chunk, gpus, "the generation as it is", size)


def _lists(snapshot: IndexSnapshot, generation: OpenGeneration, gpus: FaissGpus, code: str) -> OpenReplica:
    around = centroids(lists_of(generation.ann.inner, snapshot.width))
    sample, _ = snapshot.chunk_vectors(spread_documents(snapshot, SAMPLE_CHUNKS))
    parts = list_parts(gpus, around, code, sample, _blocks(snapshot))
    replica = Replica(parts, nprobe=generation.ann.nprobe, n_lists=generation.ann.n_lists)
    bits = 16 if code == _HALVES else 8
    size = snapshot.n_chunks * (snapshot.width * bits // 8 + 8)
    name = f"the lists of the generation with {bits} bits a number"
    last_chunk = int((snapshot.locations.first_chunk + snapshot.locations.n_chunks).max()) - 1
    return _opened(replica, last_chunk, gpus, name, size)


def _opened(replica: Replica, through_chunk: int, gpus: FaissGpus, name: str, size_bytes: int) -> OpenReplica:
    where = ", ".join(map(gpus.name, gpus.numbers))
    summary = f"{name}, {replica.n_vectors:,} vectors in {_gib(size_bytes)} on {where}"
    return OpenReplica(replica, through_chunk, summary)


def _blocks(snapshot: IndexSnapshot) -> Iterator[tuple[Ids, Vectors]]:
    """All chunks that can be found, with their ids, in blocks of whole documents of about `BLOCK_CHUNKS` chunks."""
    locations = snapshot.locations
    block = (np.cumsum(locations.n_chunks) - 1) // BLOCK_CHUNKS
    for positions in np.split(np.arange(len(locations)), np.flatnonzero(np.diff(block)) + 1):
        rows, _ = snapshot.chunk_vectors(positions)
        yield ranges(locations.first_chunk[positions], locations.n_chunks[positions]), rows


def spread_documents(snapshot: IndexSnapshot, n_chunks: int) -> Positions:
    """Documents evenly spread over an index, with about `n_chunks` chunks in total; at least one document."""
    n = snapshot.n_documents
    wanted = max(1, min(n, n_chunks * n // max(1, snapshot.n_chunks)))
    return np.unique(np.linspace(0, n - 1, wanted).astype(np.int64))


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.2f} GiB"
