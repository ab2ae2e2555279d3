"""Chooses how an index that was opened for a GPU is searched: on the GPU, or on the CPU with the reason.

All chunk vectors are compared on the GPU if they fit into its memory. Else lists of FAISS are copied there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.environment import gpu_numbers
from engine.errors import BudgetExceeded
from engine.gpu.gpus import FaissGpus, why_none
from engine.gpu.replication import replicate
from engine.gpu.scan import BYTES_AT_ONCE, DeviceScan
from engine.gpu.self_test import probe, probe_scan
from engine.store.replica import OpenReplica
from engine.store.snapshot import IndexSnapshot

RESERVED_BYTES = BYTES_AT_ONCE + (2 << 30)  # for products, and for an encoder and its batches


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What a GPU computes for a search; neither scan nor replica if the GPU cannot be used."""

    scan: DeviceScan | None
    replica: OpenReplica | None
    summary: str  # one line

    def close(self) -> None:
        """Release the GPU."""
        if self.scan is not None:
            self.scan.close()
        if self.replica is not None:
            self.replica.ann.close()


def accelerate(snapshot: IndexSnapshot, device: str) -> Acceleration:
    """Copy an index onto the GPUs of a device, `cuda` or `cuda:N`, and test the copy; fall back to the CPU.

    Reads all chunk vectors, unless the published generation itself is copied. The snapshot stays open meanwhile.

    Raises:
        IndexDamaged: a file is not the one that was written.
    """
    numbers = gpu_numbers(device)
    if not numbers or max(numbers) >= torch.cuda.device_count():
        return on_the_cpu(f"torch sees {torch.cuda.device_count()} GPUs, and {device} was requested")
    room = min(torch.cuda.mem_get_info(number)[0] for number in numbers) - RESERVED_BYTES
    names = ", ".join(f"{torch.cuda.get_device_name(number)} {number}" for number in numbers)
    devices = [f"cuda:{number}" for number in numbers]
    scan, reason = scan_on(snapshot, devices, room * len(numbers))
    if scan is not None:
        return Acceleration(scan, None, f"searched on the GPU: {reason} on {names}")
    if no_lists := why_none(numbers):
        return on_the_cpu(f"{reason}; {no_lists}")
    return lists_on(snapshot, FaissGpus(numbers), reason)


def scan_on(snapshot: IndexSnapshot, devices: Sequence[str], room: int) -> tuple[DeviceScan | None, str]:
    """All chunks on devices with a number of free bytes in total, tested, and a summary; or None, and the reason."""
    n, width = snapshot.n_chunks, snapshot.width
    if not n:
        return None, "the index has no vectors to search"
    name = f"every chunk in float16, {n:,} vectors in {2 * n * width / 2**30:,.2f} GiB"
    if 2 * n * width > room:
        return None, f"there is room for {max(0, room) / 2**30:,.2f} GiB, not for {name}"
    try:
        scan = DeviceScan(
            snapshot.locations.n_chunks, lambda some: snapshot.chunk_rows(some)[0], width, devices, snapshot.chunk_bits
        )
        error = probe_scan(snapshot, scan)
    except (RuntimeError, BudgetExceeded) as failure:
        return None, f"{name} failed ({str(failure).splitlines()[-1].strip()[-160:]})"
    if error > scan.error:
        scan.close()
        return None, f"the test of {name} failed: similarities are up to {error:.0e} off, {scan.error:.0e} is allowed"
    return scan, f"{name}, similarities within {error:.0e} of the CPU's"


def lists_on(snapshot: IndexSnapshot, gpus: FaissGpus, reason: str) -> Acceleration:
    """Lists of FAISS on GPUs, tested; `reason` says why not all chunks are compared."""
    replica, summary = replicate(snapshot, gpus)
    if replica is None:
        return on_the_cpu(f"{reason}; {summary}")
    try:
        tested, faults = probe(snapshot, replica)
    except BudgetExceeded as error:
        replica.ann.close()
        return on_the_cpu(str(error))
    if faults:
        replica.ann.close()
        return on_the_cpu(f"the probe of {summary} failed: {'; '.join(faults)}")
    beyond = (
        f"the CPU answers beyond {replica.ann.most_k:,} chunks a query, and where a filter leaves little; "
        f"--exact scans the shards"
    )
    return Acceleration(None, replica, f"searched on the GPU: {summary}; probe: {tested}; {beyond}; {reason}")


def on_the_cpu(reason: str) -> Acceleration:
    """No acceleration, with the reason."""
    return Acceleration(None, None, f"searched on the CPU: {reason}")
