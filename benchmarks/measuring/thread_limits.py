"""Threads, and ways to multiply, that are the same for every library of this process, ours and others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Read when the pools of Lance start: its own, and that of rayon, which its library holds.
_READ_AT_START = ("LANCE_CPU_THREADS", "RAYON_NUM_THREADS")


@contextmanager
def limited_threads(threads: int, *, width: int) -> Iterator[None]:
    """Limit torch, FAISS, Lance and matrix products.

    Our indexes let FAISS multiply by BLAS, and our encoders let torch multiply by
    oneDNN, wherever they are loaded. Here both are set for whoever is measured, so
    that no program is quicker for a switch of this process.

    What was set before comes back for matrix products only: it is for processes of their own.

    Args:
        threads: of each library.
        width: D of the vectors.
    """
    import faiss
    import torch
    from threadpoolctl import threadpool_limits

    from engine.encoders.backbone.hardware import set_up_kernels
    from engine.store.ann import multiply_by_blas

    for variable in _READ_AT_START:
        os.environ[variable] = str(threads)
    multiply_by_blas(width)
    set_up_kernels()
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    with threadpool_limits(threads):
        yield
