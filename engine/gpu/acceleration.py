"""Chooses how an index that was opened for a GPU is searched: on the GPU, or on the CPU with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import torch

from engine.encoders.encoder import Vectors
from engine.environment import gpu_numbers
from engine.errors import BudgetExceeded
from engine.gpu.gpus import FaissGpus, Gpus, why_none
from engine.gpu.replication import replicate
from engine.gpu.self_test import Probe, probe
from engine.scoring.similarity import Multiply, products
from engine.store.replica import OpenReplica
from engine.store.snapshot import IndexSnapshot


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What a GPU computes for a search; no replica if the GPU cannot be used."""

    replica: OpenReplica | None
    multiply: Multiply  # for exact scans and for rescoring
    probe: Probe | None  # None if there was nothing to probe
    summary: str  # one line

    def close(self) -> None:
        """Release the GPU."""
        if self.replica is not None:
            self.replica.ann.close()


def accelerate(snapshot: IndexSnapshot, device: str) -> Acceleration:
    """Copy an index onto GPUs and probe the copy; fall back to the CPU where that fails.

    Reads all chunk vectors, unless the published generation itself is copied.

    Args:
        snapshot: stays open while the copy is used.
        device: `cuda` for all GPUs, or `cuda:N`; torch must see it.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    numbers = gpu_numbers(device)
    if reason := why_none(numbers):
        return on_the_cpu(reason)
    # Loads torch.

    return accelerate_on(snapshot, FaissGpus(numbers), TorchProducts(f"cuda:{numbers[0]}"))


def accelerate_on(snapshot: IndexSnapshot, gpus: Gpus, multiply: Multiply = products) -> Acceleration:
    """Do the work of `accelerate` on given GPUs."""
    replica, summary = replicate(snapshot, gpus)
    if replica is None:
        return on_the_cpu(summary)
    try:
        found = probe(snapshot, replica, multiply)
    except BudgetExceeded as error:
        replica.ann.close()
        return on_the_cpu(str(error))
    if found.faults:
        replica.ann.close()
        return on_the_cpu(f"the probe of {summary} failed: {'; '.join(found.faults)}", found)
    beyond = (
        f"the CPU answers beyond {replica.ann.most_k:,} chunks a query, and where a filter leaves little; "
        f"--exact scans the shards"
    )
    return Acceleration(replica, multiply, found, f"searched on the GPU: {summary}; probe: {found.summary}; {beyond}")


def on_the_cpu(reason: str, found: Probe | None = None) -> Acceleration:
    """No acceleration, with the reason."""
    return Acceleration(None, products, found, f"searched on the CPU: {reason}")


class TorchProducts:
    """A `Multiply` by torch, in float32 so that hits are the same as on the CPU."""

    def __init__(self, device: str) -> None:
        """Multiply on a device, for example `cuda:0`."""
        self._device = device
        self._lock = Lock()

    def __call__(self, queries: Vectors, vectors: Vectors) -> Vectors:
        """See `engine.scoring.similarity.products`."""
        with self._lock:
            # Encoders let torch round the factors of products on a GPU to 10 bits; that changes similarities by 1e-3.
            usual = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")
            try:
                one, other = (torch.tensor(rows, device=self._device) for rows in (queries, vectors))
                found: Vectors = (one @ other.T).cpu().numpy()
            finally:
                torch.set_float32_matmul_precision(usual)
        return found
