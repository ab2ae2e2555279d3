"""Times a query as percentiles, processor time, and the threads that every library has while something is timed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds a query, one query at a time, warm."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


def percentiles(times_ms: Sequence[float]) -> Percentiles:
    """Of at least one time, interpolated linearly between neighbours."""
    p50, p95, p99 = np.percentile(times_ms, [50, 95, 99])
    return Percentiles(round(float(p50), 3), round(float(p95), 3), round(float(p99), 3))


def processor_seconds() -> float:
    """Seconds that this process and its ended children have used, in user and system mode."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


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
