"""The cost of an index in partitions: machines, memory, disk, time, and query latency. Measures nothing.

    query = once + ceil(P / (M C)) * rank(N / P) + rounds * trip + bytes / bandwidth

for N chunks in P partitions on M machines of C cores; the last two terms are 0 on one machine. rank(n) is interpolated
between measured searches (`indexer.plan.partition_points`), and grows in proportion to n beyond the largest of them.
The plan records the basis of its query times.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import ceil
from typing import Any

import numpy as np

from engine.errors import QueryError
from engine.store.ann import AUTO
from engine.store.manifest import MOST_PARTITIONS
from indexer.generation.index_choice import Size, climb_down
from indexer.plan.partition_points import ONCE_MS, POINTS, PROCESS_BYTES, QUERY_BYTES, Point
from indexer.plan.rates import Rates, generation_seconds
from indexer.plan.values import Plan

MOST_CHUNKS = 1_000_000_000
_TRIP_MS = 1.0  # between two machines of one network, there and back
_NETWORK_BYTES_PER_SECOND = 1e9 / 8
_ROUNDS = 2  # rank and show
_USED_SHARE = 0.8  # of the memory of a machine; the rest is the system's


class Basis(StrEnum):
    """The source of the ranking time in a partition."""

    RECORD = "measured at this size"
    BETWEEN = "computed between measured sizes"
    BEYOND = "computed beyond the measured sizes"


@dataclass(frozen=True, slots=True)
class Machine:
    """One of several equal machines."""

    cores: int
    memory_bytes: int


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """An index in partitions, as it will be when all documents are in."""

    n_partitions: int
    n_documents: int
    n_chunks: int
    n_machines: int
    machine: Machine
    n_on_each: int  # partitions of a machine, at most
    factory: str  # of the FAISS index of each partition
    memory_bytes: int  # of each machine: processes and FAISS indexes
    mapped_bytes: int  # of each machine: shards, which the system keeps in memory where there is room
    are_shards_in_memory: bool  # whether there is room for all of them
    disk_bytes: int  # of each machine, without postings of words
    encode_seconds: float  # reading, encoding and storing, on all machines at the same time
    publish_seconds: float  # building FAISS indexes, partition after partition, on all machines at the same time
    query_ms: float  # median of one query at a time
    rank_ms: float  # part of `query_ms`: ranking in one partition
    query_bytes: int  # bytes sent between all machines for a query
    basis: Basis  # of `query_ms` and `rank_ms`
    points: tuple[Point, ...]  # that they were computed from

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def plan_partitions(
    plan: Plan,
    width: int,
    rates: Rates,
    n_partitions: int,
    machine: Machine,
    *,
    n_machines: int | None = None,
    n_documents: int | None = None,
    points: Sequence[Point] = POINTS,
) -> PartitionPlan:
    """Plan an index in partitions.

    Args:
        plan: of the same corpus as one index; or of a representative part of the corpus.
        width: of the vectors.
        rates: of this machine.
        n_partitions: P.
        machine: cores and memory of each machine.
        n_machines: M; by default the fewest whose memory holds processes and shards, at most P.
        n_documents: of the whole corpus; by default those of the plan.
        points: measured searches, by ascending size.

    Raises:
        QueryError: the number of partitions, machines or chunks is out of range.
    """
    if not 1 <= n_partitions <= MOST_PARTITIONS:
        raise QueryError(f"{n_partitions} partitions; there can be 1 to {MOST_PARTITIONS:,}")
    if n_machines is not None and not 1 <= n_machines <= n_partitions:
        raise QueryError(f"{n_machines} machines for {n_partitions} partitions; name from 1 to {n_partitions}")
    n_planned = max(1, plan.n_new + plan.n_changed + plan.n_unchanged)
    times = 1.0 if n_documents is None else n_documents / n_planned
    size = Size(round(times * n_planned), round(times * plan.n_chunks_after), width)
    if size.n_chunks > MOST_CHUNKS:
        raise QueryError(f"{size.n_chunks:,} chunks; plans reach to {MOST_CHUNKS:,}")
    part = Size(-(-size.n_documents // n_partitions), -(-size.n_chunks // n_partitions), width)
    rung = climb_down(AUTO, part, None)[-1]
    shards, catalog = (times * of_all / n_partitions for of_all in (plan.disk.shards, plan.disk.catalog))
    held = PROCESS_BYTES + rung.index_bytes  # by the process of a partition
    if n_machines is None:
        n_machines = min(n_partitions, ceil(n_partitions * (held + shards) / (_USED_SHARE * machine.memory_bytes)))
    on_each = ceil(n_partitions / n_machines)
    rank_ms = ranking_ms(part.n_chunks, points)
    query_bytes = n_partitions * QUERY_BYTES if n_machines > 1 else 0
    return PartitionPlan(
        n_partitions,
        size.n_documents,
        size.n_chunks,
        n_machines,
        machine,
        on_each,
        rung.factory,
        memory_bytes=on_each * rung.index_bytes + PROCESS_BYTES * (1 if n_machines == 1 else on_each),
        mapped_bytes=round(on_each * shards),
        are_shards_in_memory=on_each * (held + shards) <= _USED_SHARE * machine.memory_bytes,
        disk_bytes=round(on_each * (rung.index_bytes + shards + catalog) + plan.disk.reference),
        encode_seconds=times * (plan.seconds.total - plan.seconds.generation) / n_machines,
        publish_seconds=on_each * generation_seconds(rung, part, rates),
        query_ms=query_ms(on_each, machine.cores, rank_ms, query_bytes),
        rank_ms=rank_ms,
        query_bytes=query_bytes,
        basis=_basis(part.n_chunks, points),
        points=tuple(points),
    )


def query_ms(on_each: int, cores: int, rank_ms: float, query_bytes: int, once_ms: float = ONCE_MS) -> float:
    """Query latency in milliseconds, by the equation of this module.

    Args:
        on_each: partitions on a machine.
        cores: of a machine.
        rank_ms: ranking in one partition.
        query_bytes: bytes sent between machines; 0 on one machine.
        once_ms: part of a query that does not depend on the number of partitions.
    """
    travelling = _ROUNDS * _TRIP_MS + 1000 * query_bytes / _NETWORK_BYTES_PER_SECOND if query_bytes else 0.0
    return once_ms + ceil(on_each / cores) * rank_ms + travelling


def ranking_ms(n_chunks: int, points: Sequence[Point]) -> float:
    """Milliseconds of ranking in one partition, interpolated linearly between the points on logarithmic scales.

    Below the smallest point the time is that of the point; beyond the largest it grows in proportion to the chunks.
    """
    sizes, times = np.array([(point.n_chunks, point.rank_ms) for point in points], np.float64).T
    inside = float(np.exp(np.interp(np.log(max(1, n_chunks)), np.log(sizes), np.log(times))))
    return inside * max(1.0, n_chunks / float(sizes[-1]))


def _basis(n_chunks: int, points: Sequence[Point]) -> Basis:
    if any(point.n_chunks == n_chunks for point in points):
        return Basis.RECORD
    return Basis.BETWEEN if points[0].n_chunks < n_chunks < points[-1].n_chunks else Basis.BEYOND
