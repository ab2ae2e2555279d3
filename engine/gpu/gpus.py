"""FAISS on GPUs: their free memory, the index types that they can hold, and lists filled from blocks of vectors.

GPU FAISS 1.15 has flat vectors, and inverted lists over a flat quantizer: of float32, of scalar codes of 4, 8 or 16
bits, and of product codes of 8 bits. It has no fast-scan codes, no RaBitQ, no graphs. An index with lists of such
codes keeps its centroids, and its codes are recomputed from the shards.

Letters in shapes: B rows of a block, L lists, D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from engine.encoders.encoder import Vectors
from engine.environment import installed_faiss, require_one_faiss
from engine.errors import install_command
from engine.store.ann import Ids, inverted_lists
from engine.store.replica import Part

require_one_faiss()
import faiss  # noqa: E402

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
        import torch

        return f"{torch.cuda.get_device_name(number)} {number}"

    def free_bytes(self, number: int) -> int:
        """Free memory of a GPU."""
        import torch

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
