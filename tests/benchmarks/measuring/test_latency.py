from __future__ import annotations

from benchmarks.measuring.latency import Percentiles, percentiles


def test_percentiles_lie_between_neighbours() -> None:
    assert percentiles([float(number) for number in range(101)]) == Percentiles(50.0, 95.0, 99.0)
    assert percentiles([2.0, 1.0]) == Percentiles(1.5, 1.95, 1.99)
    assert percentiles([3.0]) == Percentiles(3.0, 3.0, 3.0)
