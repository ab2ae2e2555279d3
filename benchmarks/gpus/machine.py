"""What a device multiplies at most, and waiting until it is done. Knows no model and no index."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.gpus.record import Peak

LEAST_SECONDS = 0.5  # of each measurement


def finish(device: str) -> None:
    """Wait for everything that was asked of a device."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], device: str) -> float:
    """Seconds of one run of some work, the mean of as many as fill `LEAST_SECONDS`; one more goes before."""
    work()
    finish(device)
    n_runs, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < LEAST_SECONDS or not n_runs:
        work()
        finish(device)
        n_runs += 1
    return spent / n_runs


def measure_peak(device: str, size: int) -> Peak:
    """Multiply square matrices of random numbers.

    Args:
        device: of torch.
        size: rows of each.
    """
    usual = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        found = {dtype: _tera(device, size, dtype) for dtype in (torch.bfloat16, torch.float16, torch.float32)}
    finally:
        torch.set_float32_matmul_precision(usual)
    return Peak(size, *found.values())


def _tera(device: str, size: int, dtype: torch.dtype) -> float:
    one, other = (torch.randn(size, size, device=device, dtype=torch.float32).to(dtype) for _ in range(2))
    out = torch.empty(size, size, device=device, dtype=dtype)
    # Twenty in a row, so that starting them costs nothing beside.
    n_products = 20 if device.startswith("cuda") else 1

    def multiply() -> None:
        for _ in range(n_products):
            torch.mm(one, other, out=out)

    return round(n_products * 2 * size**3 / seconds_of(multiply, device) / 1e12, 3)
