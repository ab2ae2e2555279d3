"""Searches that were measured, from which the time of a query over partitions is computed. Values only.

They are those of `benchmarks/results/partition-plan-*.json` and `scale-*.json`; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Ranking in one partition of one size."""

    n_chunks: int
    rank_ms: float  # processor time of one query in one thread, median
    record: str  # that holds it


_SPLIT = "partition-plan-proposals-67823"
_GROWN = "scale-proposals-words-clscisumm-words-1000049-cap6144m"  # by two threads
ONCE_MS = 49.39  # of a query, beside the ranking: thresholds before, breakdowns after
QUERY_BYTES = 95_894  # for each partition: the query to it, its ranks and documents back; mean
PROCESS_BYTES = 522_378_984  # own memory of a process that searches, without its FAISS index
POINTS: tuple[Point, ...] = (  # by rising size
    Point(4_478, 10.8, _SPLIT),
    Point(8_495, 20.61, _SPLIT),
    Point(17_962, 37.9, _SPLIT),
    Point(34_841, 58.71, _SPLIT),
    Point(67_823, 42.23, _SPLIT),
    Point(1_000_049, 64.07, _GROWN),
)
