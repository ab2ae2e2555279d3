"""Times a query as percentiles. Pure arithmetic: nothing is timed here."""

from __future__ import annotations

from collections.abc import Sequence
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
