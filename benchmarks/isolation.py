"""Runs functions in processes of their own, which start with nothing but the function.

Memory is as Linux counts it: RLIMIT_DATA caps private writable memory (heap, arrays, stacks, data of libraries);
RssFile counts pages of mapped files apart, which are dropped when memory is short; VmHWM is the peak of both together.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import resource
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from engine.errors import EngineError

SETTINGS = {  # of processes of other programs, where the caller has no others
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_SAMPLE_SECONDS = 0.01


class ProcessFailed(EngineError):
    """Raised when a process did not run to its end."""


def run_fresh(
    target: Callable[..., dict[str, Any]],
    *arguments: Any,  # noqa: ANN401
    cap_bytes: int | None = None,
    threads: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], Memory]:
    """Call a function of a module, whose result goes through JSON, in a process with nothing else imported."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, target, arguments, cap_bytes, threads), daemon=True)
    with mock.patch.dict(os.environ, variables or {}):
        process.start()
    sender.close()
    try:
        reply = json.loads(receiver.recv_bytes())
    except EOFError:
        reply = {}
    process.join()
    if "refused" in reply:
        raise EngineError(reply["refused"])
    if "answer" not in reply:
        capped = f" under a cap of {cap_bytes / 2**20:,.0f} MiB; allow more" if cap_bytes else ""
        reason = reply.get("reason", f"exit code {process.exitcode}")
        raise ProcessFailed(f"{target.__name__} ended with {reason}{capped}")
    return reply["answer"], Memory(**reply["memory"])


def _answer(
    sender: Connection,
    target: Callable[..., dict[str, Any]],
    arguments: tuple[Any, ...],
    cap_bytes: int | None,
    threads: int | None,
) -> None:
    if cap_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (cap_bytes, cap_bytes))
    reply: dict[str, Any]
    try:
        with _MemorySampler() as sampler:
            reply = {"answer": _limited(target, arguments, threads), "memory": sampler.memory().__dict__}
    except EngineError as error:
        reply = {"refused": str(error)}
    except MemoryError:
        reply = {"reason": "not enough memory"}
    sender.send_bytes(json.dumps(reply).encode())


def _limited(target: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], threads: int | None) -> dict[str, Any]:
    if threads is None:
        return target(*arguments)
    from threadpoolctl import threadpool_limits

    importlib.import_module("engine.store.ann")  # the limit reaches only libraries that are loaded
    with threadpool_limits(threads):
        return target(*arguments)


@dataclass(frozen=True)
class Memory:
    """MiB of a process; `peak` is the kernel's own, the other one was sampled every 10 ms."""

    peak: float  # resident, pages of mapped files included
    peak_anonymous: float  # resident, without pages of files: what a budget must hold


def rss_mib() -> float:
    """Resident memory now, in MiB."""
    return _status_mib()["VmRSS"]


def peak_rss_mib() -> float:
    """Peak resident memory since the process began, in MiB."""
    return _status_mib()["VmHWM"]


class _MemorySampler:
    """Samples the memory of this process without pages of files in a thread, until the context is left."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._anonymous = 0.0

    def __enter__(self) -> _MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def memory(self) -> Memory:
        self._sample()
        return Memory(round(peak_rss_mib(), 1), round(self._anonymous, 1))

    def _watch(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        self._anonymous = max(self._anonymous, _status_mib()["RssAnon"])


def _status_mib() -> dict[str, float]:
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines() if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) / 1024 for name, size, _ in lines}


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

    from engine.encoders.hardware import set_up_kernels
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
