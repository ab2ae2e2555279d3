"""The writer of a partition as an actor of Ray, on the machine of its folder; see `indexer.cluster.job`.

It holds the writer lock of the partition while it commits. If its process dies, Ray starts it again, and it finds in
the catalog which documents still have no vectors: nothing that was committed is encoded again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.errors import IndexBusy
from engine.readers import Unreadable
from engine.store.writer import Writer
from indexer.building.pipeline import Pipeline
from indexer.building.report import BuildReport
from indexer.cluster.encoders import EncoderSettings, spread, submitted
from indexer.cluster.session import fetched
from indexer.generation.compaction import join_small_shards
from indexer.generation.generations import derive
from indexer.generation.resources import DiskGuard

BATCH_CHARS = 1 << 17  # of a batch for one encoder; some 30,000 tokens
_LOCK_SECONDS = 20.0  # in which the process of a killed writer ends
_MOST_RESTARTS = 20  # of the writer of a partition


@dataclass(frozen=True, slots=True)
class Commit:
    """The work of the writer of a partition since its last call."""

    n_without: int  # documents of the partition that have no vectors now
    n_tokens: int = 0
    n_chunks: int = 0
    encode_seconds: float = 0.0
    failures: tuple[Unreadable, ...] = ()


class PartitionWriter:
    """Commits vectors to one partition, or to an index that is not partitioned."""

    def __init__(self, folder: Path, encoder: EncoderSettings, n_at_once: int, batch_chars: int) -> None:
        """Open nothing yet: an error here would be lost."""
        self._folder = folder
        self._encode = partial(spread, submit=partial(submitted, encoder), n_at_once=n_at_once)
        self._batch_chars = batch_chars
        self._writer: Writer | None = None
        self._steps: Iterator[BuildReport] = iter(())
        self._report = BuildReport()
        self._n_without = 0

    def commit_next(self) -> Commit | None:
        """Take the lock, or commit the vectors of the next batch; None, and the lock is free, where none is left.

        Raises:
            IndexBusy: another process writes the partition.
        """
        if self._writer is None:
            self._writer = _opened(self._folder)
            pipeline, missing = Pipeline(self._writer, None, batch_chars=self._batch_chars), self._writer.unencoded()
            self._report, self._n_without = pipeline.report, len(missing)
            self._steps = pipeline.each_encoded(missing, self._encode)
            return Commit(self._n_without)
        report = self._report
        before = report.n_tokens, report.n_chunks, report.encode_seconds, len(report.failures)
        if next(self._steps, None) is None:
            self._writer.close()
            return None
        return Commit(
            self._n_without - report.n_encoded,
            report.n_tokens - before[0],
            report.n_chunks - before[1],
            report.encode_seconds - before[2],
            tuple(report.failures[before[3] :]),
        )


def publish(folder: Path, factory: str, recall_floor: float) -> list[str]:
    """Join small shards, and bring the FAISS index and the postings of words up to date.

    Returns:
        Lines to log.

    Raises:
        RecallTooLow: no setting of the FAISS index reaches the floor.
    """
    lines: list[str] = []
    with _opened(folder) as writer:
        disk = DiskGuard(folder)
        join_small_shards(writer, disk, log=lines.append)
        derive(writer, factory, disk=disk, recall_floor=recall_floor, log=lines.append)
    return lines


def _opened(folder: Path) -> Writer:
    """Take the lock, which the process of a killed writer may hold for a moment."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return Writer(folder)
        except IndexBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@dataclass(frozen=True, slots=True)
class Home:
    """The node of the cluster that has the folders of an index."""

    node: str

    def encode(
        self,
        parts: Sequence[Path],
        encoder: EncoderSettings,
        n_encoders: int,
        batch_chars: int,
        take: Callable[[Path, Commit], None],
    ) -> None:
        """Encode all documents without vectors in some partitions, several partitions at the same time.

        Args:
            n_encoders: encoders that run at the same time, for all partitions together.

        Raises:
            ClusterError: a process died again and again.
            EngineError: raised by a writer or an encoder.
        """
        n_writers = max(1, min(len(parts), n_encoders))
        free = [n_encoders // n_writers + (place < n_encoders % n_writers) for place in range(n_writers)]
        waiting, running = deque(parts), dict[Any, tuple[Any, Path, int]]()
        try:
            while waiting or running:
                while waiting and free:
                    part, n_at_once = waiting.popleft(), free.pop()
                    # Processes of Ray have as many threads as they take cores; a writer has one, and mostly waits.
                    options = {"num_cpus": 0, "max_restarts": _MOST_RESTARTS, "max_task_retries": -1}
                    actor = self._remote(PartitionWriter, **options).remote(part, encoder, n_at_once, batch_chars)
                    running[actor.commit_next.remote()] = actor, part, n_at_once
                (ready, *_), _ = ray.wait(list(running), num_returns=1)
                actor, part, n_at_once = running[ready]
                commit = fetched(ready)
                del running[ready]
                if commit is None:
                    ray.kill(actor)
                    free.append(n_at_once)
                else:
                    take(part, commit)
                    running[actor.commit_next.remote()] = actor, part, n_at_once
        finally:
            for actor, _, _ in running.values():
                ray.kill(actor)

    def publish(self, parts: Sequence[Path], factory: str, recall_floor: float, log: Callable[[str], None]) -> None:
        """Publish what is derived from the documents of each partition, as many at once as this machine has cores."""
        remote = self._remote(publish, num_cpus=1, max_retries=_MOST_RESTARTS)
        published = [remote.remote(part, factory, recall_floor) for part in parts]
        for part, lines in zip(parts, published, strict=True):
            for line in fetched(lines):
                log(line if len(parts) == 1 else f"{part.name}: {line}")

    def _remote(self, work: Any, **options: Any) -> Any:  # noqa: ANN401 - Ray makes its class
        return ray.remote(work).options(scheduling_strategy=NodeAffinitySchedulingStrategy(self.node, False), **options)
