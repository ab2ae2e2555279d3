"""Percentiles of query times, processor time, and the number of threads of every library during a measurement."""

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
    """Percentiles of at least one time, interpolated linearly between neighbours."""
    p50, p95, p99 = np.percentile(times_ms, [50, 95, 99])
    return Percentiles(round(float(p50), 3), round(float(p95), 3), round(float(p99), 3))


@contextmanager
def limited_threads(threads: int, *, width: int) -> Iterator[None]:
    """Limit torch, FAISS, Lance and matrix products; restores only the last, so use it in a process of its own.

    FAISS multiplies by BLAS and torch by oneDNN in every measured program, as longmatch's indexes and encoders let
    them, so that none is faster because of a setting of this process. `width` is that of the vectors.
    """
    import faiss
    import torch
    from threadpoolctl import threadpool_limits

    from engine.encoders.backbone.hardware import set_up_kernels
    from engine.store.ann import multiply_by_blas

    # Read when the thread pools of Lance start: its own, and that of rayon, which its library contains.
    for variable in ("LANCE_CPU_THREADS", "RAYON_NUM_THREADS"):
        os.environ[variable] = str(threads)
    multiply_by_blas(width)
    set_up_kernels()
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    with threadpool_limits(threads):
        yield
