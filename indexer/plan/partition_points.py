"""Searches that were measured, from which the time of a query over partitions is computed. Values only.

They are those of `benchmarks/results/partition-plan-*.json`; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Ranking in one partition of one size."""

    n_chunks: int
    rank_ms: float  # processor time of one query in one thread, median
    record: str  # that holds it


_REAL = "partition-plan-proposals-67823"
_GROWN = "partition-plan-scale-proposals-1000049"  # the three constants below are of this record
ONCE_MS = 23.83  # processor time of a query beside the ranking: thresholds before, breakdowns after
QUERY_BYTES = 102_911  # sent per partition: the query to it, its ranks and documents back; mean
PROCESS_BYTES = 207_188_504  # own memory of a process that searches, without its FAISS index
POINTS: tuple[Point, ...] = (  # in ascending order of size
    Point(4_478, 4.05, _REAL),
    Point(8_495, 6.95, _REAL),
    Point(17_962, 13.48, _REAL),
    Point(34_841, 28.71, _REAL),
    Point(67_823, 18.97, _REAL),
    Point(250_353, 25.88, _GROWN),
    Point(1_000_049, 35.31, _GROWN),
)
