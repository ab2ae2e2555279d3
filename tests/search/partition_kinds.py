"""The kinds of partitions that the conformance suite opens, each with the documents of an index on disk.

A kind is a function of a folder and the constants of the score. It yields a `Partition` of the documents of that
folder; their positions may be others. A kind that needs a server or a package gets a marker and skips without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from engine.scoring.evidence import Scoring
from engine.search.partition import LocalPartition, Partition
from engine.store.snapshot import IndexSnapshot
from tests.ray_cluster import ray_cluster

OpenPartition = Callable[[Path, Scoring], AbstractContextManager[Partition]]


@contextmanager
def local(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    with IndexSnapshot(folder) as snapshot:
        yield LocalPartition(snapshot, scoring)


@contextmanager
def on_ray(folder: Path, scoring: Scoring) -> Iterator[Partition]:
    ray_cluster()
    from indexer.cluster.job import PartitionActors

    with closing(PartitionActors([folder])) as actors, IndexSnapshot(folder) as snapshot:
        yield actors.partitions([snapshot], scoring)[0]


KINDS = [pytest.param(local, id="local"), pytest.param(on_ray, id="ray", marks=pytest.mark.ray)]
