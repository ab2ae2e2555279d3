"""How fast this machine multiplies matrices through torch: the limit that speeds are compared with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring.timing import limited_threads

DTYPES = ("float32", "bfloat16")
_SECONDS = 0.4  # of each product, repeated
_WARM_UP = 2


@dataclass(frozen=True)
class Shape:
    """A product of matrices, (M, K) times (K, N)."""

    m: int
    k: int
    n: int

    @property
    def name(self) -> str:
        """The name in records."""
        return f"{self.m}x{self.k}x{self.n}"

    @property
    def flops(self) -> int:
        """Floating-point operations; a multiplication and an addition count as two."""
        return 2 * self.m * self.k * self.n


SQUARE = Shape(2048, 2048, 2048)


def measure_products(shapes: Sequence[Shape], threads: int, width: int, device: str = "cpu") -> dict[str, Any]:
    """GFLOP/s by "DTYPE MxKxN" of linear layers over random matrices; in a process that does nothing else.

    The quickest of all repetitions counts: the limit is the speed of the machine by itself, and other work on it
    only slows it down.
    """
    with limited_threads(threads, width=width):
        return {f"{dtype} {shape.name}": _gflops(shape, dtype, device) for dtype in DTYPES for shape in shapes}


def _gflops(shape: Shape, dtype: str, device: str) -> float:
    import torch

    random = torch.Generator().manual_seed(0)
    left, weight = (
        torch.randn(rows, shape.k, generator=random).to(device, getattr(torch, dtype)) for rows in (shape.m, shape.n)
    )
    times: list[float] = []
    with torch.inference_mode():
        while len(times) <= _WARM_UP or sum(times) < _SECONDS:
            started = time.perf_counter()
            torch.nn.functional.linear(left, weight)
            if device != "cpu":
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - started)
    return round(shape.flops / min(times[_WARM_UP:]) / 1e9, 1)
