"""The kinds of partitions that the conformance suite opens, each with the documents of an index on disk.

A kind is a function of a folder and the constants of the score. It yields a `Partition` of the documents of that
folder; their positions may be others. A kind that needs a server or a package gets a marker and skips without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from engine.remote.address import ServerAddress
from engine.remote.exchange import Access, Exchange
from engine.remote.partition import RemotePartition
from engine.remote.snapshot import ServedSnapshot, served_index
from engine.scoring.evidence import Scoring
from engine.search.local_partition import LocalPartition
from engine.search.partition import Partition
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import Snapshot
from indexer.partitions.splitting import partition
from tests.postgres_server import new_address
from tests.ray_cluster import ray_cluster
from tests.remote.servers import serving

OpenPartition = Callable[[Path, Scoring], AbstractContextManager[Partition]]


@contextmanager
def local(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    with Snapshot(folder) as snapshot:
        yield LocalPartition(snapshot, scoring)


@contextmanager
def postgres(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    address = new_address()
    partition(folder, address, 1)
    with open_snapshot(address) as snapshot:
        yield LocalPartition(snapshot, scoring)


@contextmanager
def served(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    with serving(folder) as address:
        access = Access(seconds=60)
        yield RemotePartition(served_index(ServerAddress(address), access), scoring)


@contextmanager
def on_ray(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    ray_cluster()
    from indexer.cluster.partitions import PartitionActors

    actors = PartitionActors([folder])
    access = Access(seconds=60, channel=actors)
    yield RemotePartition(ServedSnapshot(folder, Exchange("the actor", [actors.address(0)], access), access), scoring)
    actors.close()


KINDS = [
    pytest.param(local, id="local"),
    pytest.param(postgres, id="postgres", marks=pytest.mark.postgres),
    pytest.param(served, id="served"),
    pytest.param(on_ray, id="ray", marks=pytest.mark.ray),
]
