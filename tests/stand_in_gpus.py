"""FAISS on the CPU in place of FAISS on GPUs, with the same limits and results, only slower.

It takes the types that GPU FAISS takes, refuses selectors, and more than `MOST` vectors or lists a query.
"""

from __future__ import annotations

from typing import Any

import faiss

from engine.encoders.encoder import Vectors
from engine.gpu import FaissGpus, can_clone
from engine.store.ann import MOST, Ids


class StandInGpus(FaissGpus):
    """A given number of GPUs, each with a given free memory."""

    def __init__(self, n: int = 1, free_bytes: int = 64 << 30) -> None:
        """Create the stand-ins.

        Args:
            n: number of GPUs.
            free_bytes: free memory of each, whatever is placed there.
        """
        self.numbers = tuple(range(n))
        self._free_bytes = free_bytes

    def name(self, number: int) -> str:
        """See `engine.gpu.FaissGpus`."""
        return f"stand-in {number}"

    def free_bytes(self, number: int) -> int:
        """See `engine.gpu.FaissGpus`."""
        return self._free_bytes

    def place(self, index: Any, number: int) -> CappedIndex:  # noqa: ANN401
        """See `engine.gpu.FaissGpus`."""
        made: Any = faiss.downcast_index(index)
        if not isinstance(made, faiss.IndexIVF) or not can_clone(made):
            raise RuntimeError(f"{type(made).__name__} is not implemented on GPU")
        return CappedIndex(faiss.clone_index(made))


class CappedIndex:
    """A FAISS index with the limits of one on a GPU."""

    def __init__(self, index: Any) -> None:  # noqa: ANN401
        """Wrap an index."""
        self._index = index

    @property
    def ntotal(self) -> int:
        """Vectors in it."""
        return int(self._index.ntotal)

    def add_with_ids(self, rows: Vectors, ids: Ids) -> None:
        """As of FAISS."""
        self._index.add_with_ids(rows, ids)

    def search(self, queries: Vectors, k: int, *, params: Any = None) -> tuple[Vectors, Ids]:  # noqa: ANN401
        """As of FAISS.

        Raises:
            RuntimeError: a GPU would refuse the search.
        """
        nprobe = getattr(params, "nprobe", 0)
        if k > MOST or nprobe > MOST:
            raise RuntimeError(f"k {k} or nprobe {nprobe} is above {MOST}")
        if getattr(params, "sel", None) is not None:
            raise RuntimeError("a selector is ignored by GPU indexes")
        D, ids = self._index.search(queries, k, params=params)
        return D, ids
