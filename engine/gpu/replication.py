"""Copies lists of a snapshot onto GPUs, where its vectors do not fit: chooses the type that does, and fills it.

It uses the first of these types that fits into memory and that GPU FAISS accepts:

1. The published generation itself, if a GPU can hold its type; one GPU only.
2. The lists of the generation with codes of 16, then of 8 bits, computed from the shards.

GPU FAISS 1.15 has flat vectors, and inverted lists over a flat quantizer: of float32, of scalar codes of 4, 8 or 16
bits, and of product codes of 8 bits. It has no fast-scan codes, no RaBitQ, no graphs. An index with lists of such
codes keeps its centroids, and its codes are recomputed from the shards.

Letters in shapes: B rows of a block, L lists, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch

from engine.encoders.encoder import Vectors
from engine.environment import installed_faiss, require_one_faiss
from engine.errors import install_command
from engine.store.ann import Ids, inverted_lists
from engine.store.replica import MOST, OpenReplica, Part, Replica
from engine.store.snapshot import IndexSnapshot, OpenGeneration, Positions
from engine.words.apart import ranges

require_one_faiss()
import faiss  # noqa: E402

BLOCK_CHUNKS = 65_536
SAMPLE_CHUNKS = 65_536
_HALVES, _BYTES = "QT_fp16", "QT_8bit"
_LIST_GROWTH = 1.5  # lists on a GPU are reallocated as they grow, and have spare capacity
Blocks = Iterable[tuple[Ids, Vectors]]
_CODES = ("QT_4bit", "QT_8bit", "QT_8bit_direct", "QT_4bit_uniform", "QT_8bit_uniform", "QT_fp16")
TEMPORARY_BYTES = 1 << 30  # allocated once on each GPU; a search that needs more requests it from the driver
# For torch, an encoder and its batches, and the memory of a search beyond its temporary memory.
RESERVED_BYTES = TEMPORARY_BYTES + (2 << 30)


class FaissGpus:
    """NVIDIA GPUs, used by a FAISS that was built for them.

    An index on a GPU supports no filter and no removal, and returns at most `MOST` (`engine.store.replica`) vectors
    per query.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        """Allocate temporary memory on each GPU; call `why_none` first to check that this is possible."""
        self.numbers = tuple(numbers)
        self._resources = {number: faiss.StandardGpuResources() for number in self.numbers}
        for resources in self._resources.values():
            resources.setTempMemory(TEMPORARY_BYTES)

    def name(self, number: int) -> str:
        """Name of a GPU for messages."""
        return f"{torch.cuda.get_device_name(number)} {number}"

    def free_bytes(self, number: int) -> int:
        """Free memory of a GPU."""
        return int(torch.cuda.mem_get_info(number)[0])

    def place(self, index: Any, number: int) -> Any:  # noqa: ANN401
        """Copy a FAISS index onto a GPU.

        Raises:
            RuntimeError: GPU FAISS has no such type, or the memory is too small.
        """
        options = faiss.GpuClonerOptions()
        options.useFloat16 = True  # for the tables of product codes
        return faiss.index_cpu_to_gpu(self._resources[number], number, index, options)


def why_none(numbers: Sequence[int]) -> str | None:
    """The reason why the installed FAISS cannot use these GPUs; None if it can."""
    installed = " and ".join(f"{name} {version}" for name, version in installed_faiss().items())
    if not hasattr(faiss, "StandardGpuResources"):
        return (
            f"{installed} was built without GPU (pip uninstall -y faiss-cpu && {install_command('gpu', 'faiss-gpu')})"
        )
    n_seen = faiss.get_num_gpus()
    if not numbers or max(numbers) >= n_seen:
        return f"{installed} sees {n_seen} GPUs, and number {max(numbers, default=0)} was requested"
    return None


def lists_of(index: Any, width: int) -> Any:  # noqa: ANN401
    """The inverted lists of an index whose centroids are as wide as the vectors; None for any other index."""
    lists = inverted_lists(index)
    is_all = isinstance(faiss.downcast_index(index), faiss.IndexIVF)  # no transform in front of the lists
    return lists if lists is not None and is_all and lists.d == width else None


def can_clone(index: Any) -> bool:  # noqa: ANN401
    """Whether a GPU can hold these inverted lists with their codes."""
    made: Any = faiss.downcast_index(index)
    if not isinstance(faiss.downcast_index(made.quantizer), faiss.IndexFlat):
        return False
    # Compare names: fast-scan and refined lists are subclasses, and their copies would lose what the subclass adds.
    kind = type(made).__name__
    if kind == "IndexIVFScalarQuantizer":
        return made.sq.qtype in [getattr(faiss.ScalarQuantizer, code) for code in _CODES]
    return kind == "IndexIVFFlat" or (kind == "IndexIVFPQ" and made.pq.nbits == 8)


def centroids(lists: Any) -> Vectors:  # noqa: ANN401
    """The centroids (L, D) of inverted lists."""
    rows: Vectors = faiss.downcast_index(lists.quantizer).reconstruct_n(0, int(lists.nlist))
    return rows


def list_parts(gpus: FaissGpus, quantizer: Vectors, code: str, sample: Vectors, blocks: Blocks) -> list[Part]:
    """Inverted lists around centroids (L, D), one part per GPU; blocks are assigned to the GPUs in turn.

    Args:
        code: FAISS's name of the scalar code, for example `QT_fp16`.
        sample: (n, D) rows from which the range of the codes is learned.
        blocks: ids (B,) and rows (B, D) float32.
    """
    width = quantizer.shape[1]
    flat = faiss.IndexFlatIP(width)
    flat.add(np.ascontiguousarray(quantizer, np.float32))
    lists = faiss.IndexIVFScalarQuantizer(
        flat, width, len(quantizer), getattr(faiss.ScalarQuantizer, code), faiss.METRIC_INNER_PRODUCT, False
    )
    lists.train(np.ascontiguousarray(sample, np.float32))
    placed = [gpus.place(lists, number) for number in gpus.numbers]
    for (ids, rows), index in zip(blocks, cycle(placed), strict=False):
        index.add_with_ids(np.ascontiguousarray(rows, np.float32), ids)
    for index in placed:
        if hasattr(index, "reclaimMemory"):
            index.reclaimMemory()  # lists that grew have spare capacity
    return [Part(index, number) for index, number in zip(placed, gpus.numbers, strict=True) if index.ntotal]


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
