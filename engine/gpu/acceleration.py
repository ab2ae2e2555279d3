"""How an index that was opened for a GPU is searched: on the GPU, or on the CPU with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from engine.devices import gpu_numbers
from engine.errors import BudgetExceeded
from engine.gpu.gpus import FaissGpus, Gpus, why_none
from engine.gpu.replication import replicate
from engine.gpu.self_test import Probe, probe
from engine.scoring.similarity import Multiply, products
from engine.store.replica import OpenReplica
from engine.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What a GPU does for a search; nothing where it could not be used."""

    replica: OpenReplica | None
    multiply: Multiply  # of exact scans and of rescoring
    probe: Probe | None  # None where there was nothing to probe
    summary: str  # in a line

    def close(self) -> None:
        """Let go of the GPU."""
        if self.replica is not None:
            self.replica.ann.close()


def accelerate(snapshot: Snapshot, device: str) -> Acceleration:
    """Copy an index onto GPUs, and probe them; what cannot be done there stays on the CPU.

    Reads all chunk vectors once.

    Args:
        snapshot: stays open meanwhile.
        device: `cuda` for all GPUs, or `cuda:N`; torch sees it.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    numbers = gpu_numbers(device)
    if reason := why_none(numbers):
        return on_the_cpu(reason)
    # Loads torch.
    from engine.gpu.products import TorchProducts

    return accelerate_on(snapshot, FaissGpus(numbers), TorchProducts(f"cuda:{numbers[0]}"))


def accelerate_on(snapshot: Snapshot, gpus: Gpus, multiply: Multiply = products) -> Acceleration:
    """The same, on what is given.

    Args:
        snapshot: stays open meanwhile.
        gpus: where indexes can be held.
        multiply: makes products there.
    """
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
    """None at all, and why."""
    return Acceleration(None, products, found, f"searched on the CPU: {reason}")
