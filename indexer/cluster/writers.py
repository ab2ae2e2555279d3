"""The writer of a partition as an actor of Ray, on the machine of its folder; see `indexer.cluster.job`.

It holds the writer lock of the partition while it commits. If its process dies, the next writer finds in the catalog
which documents still have no vectors, and goes on there: nothing that was committed is encoded again.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.errors import ClusterError, IndexBusy
from engine.readers import Unreadable
from engine.store.writer import Writer
from indexer.building.pipeline import Pipeline
from indexer.building.report import BuildReport
from indexer.cluster.encoders import EncoderSettings, spread, submitted
from indexer.cluster.session import DIED, fetched
from indexer.generation.compaction import join_small_shards
from indexer.generation.generations import derive
from indexer.generation.resources import DiskGuard

if TYPE_CHECKING:
    Actor: TypeAlias = Any  # Ray makes its class
    Pending: TypeAlias = ray.ObjectRef[Any]


BATCH_CHARS = 1 << 17  # of a batch for one encoder; some 30,000 tokens
_LOCK_SECONDS = 20.0  # in which the process of a killed writer ends


@dataclass(frozen=True, slots=True)
class Commit:
    """The work of the writer of a partition since its last call."""

    n_without: int  # documents of the partition that have no vectors now
    n_tokens: int = 0
    n_chunks: int = 0
    encode_seconds: float = 0.0
    failures: tuple[Unreadable, ...] = ()


class PartitionWriter:
    """Commits vectors to one partition at a time, or to an index that is not partitioned."""

    def __init__(self, encoder: EncoderSettings, n_at_once: int, batch_chars: int) -> None:
        """Open nothing yet: an error here would be lost."""
        self._encoder = encoder
        self._n_at_once = n_at_once
        self._batch_chars = batch_chars
        self._writer: Writer | None = None
        self._steps: Iterator[BuildReport] = iter(())
        self._report = BuildReport()
        self._n_without = 0

    def begin(self, folder: Path) -> Commit:
        """Take the lock of a partition, and count the documents that have no vectors.

        Raises:
            IndexBusy: another process writes the partition.
        """
        self._writer = writer = _opened(folder)
        pipeline = Pipeline(writer, None, batch_chars=self._batch_chars)
        missing = writer.unencoded()
        encode = partial(spread, submit=partial(submitted, self._encoder), n_at_once=self._n_at_once)
        self._report, self._n_without = pipeline.report, len(missing)
        self._steps = pipeline.each_encoded(missing, encode)
        return Commit(self._n_without)

    def commit_next(self) -> Commit | None:
        """Commit the vectors of the next batch; None, and the lock is free again, where none is left."""
        report = self._report
        before = report.n_tokens, report.n_chunks, report.encode_seconds, len(report.failures)
        if next(self._steps, None) is None:
            assert self._writer is not None
            self._writer.__exit__(None, None, None)
            return None
        return Commit(
            self._n_without - report.n_encoded,
            report.n_tokens - before[0],
            report.n_chunks - before[1],
            report.encode_seconds - before[2],
            tuple(report.failures[before[3] :]),
        )

    def publish(self, folder: Path, factory: str, recall_floor: float) -> list[str]:
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


_MOST_DEATHS = 5  # of a writer in a row, without a commit


@dataclass
class _Post:
    """A writer process, and the partition that it works on."""

    n_at_once: int  # batches that are encoded for the writer at the same time
    writer: Actor
    part: Path = Path()
    has_begun: bool = False  # holds the lock of the partition
    n_deaths: int = 0  # since the last commit


class WriterPool:
    """Lets writers commit vectors to partitions, several at the same time."""

    def __init__(
        self,
        home: str,
        encoder: EncoderSettings,
        n_encoders: int,
        batch_chars: int,
        log: Callable[[str], None],
    ) -> None:
        """Start no process yet.

        Args:
            home: id of the node that has the folders.
            n_encoders: encoders that run at the same time, for all partitions together.
        """
        self._home = NodeAffinitySchedulingStrategy(home, soft=False)
        self._encoder = encoder
        self._n_encoders = n_encoders
        self._batch_chars = batch_chars
        self._log = log
        self._posts: list[_Post] = []

    def encode(self, parts: Sequence[Path], take: Callable[[Path, Commit], None]) -> None:
        """Encode all documents without vectors in some partitions.

        Raises:
            ClusterError: a process died repeatedly.
            EngineError: raised by a writer or an encoder.
        """
        if not parts:
            return

        def ask(post: _Post) -> Pending:
            return post.writer.commit_next.remote() if post.has_begun else post.writer.begin.remote(post.part)

        def took(post: _Post, commit: Commit | None) -> bool:
            if commit is not None:
                post.n_deaths = 0 if post.has_begun else post.n_deaths
                post.has_begun = True
                take(post.part, commit)
            return commit is not None

        n_posts = min(len(parts), self._n_encoders)
        shares = [self._n_encoders // n_posts + (place < self._n_encoders % n_posts) for place in range(n_posts)]
        self._posts = [self._post(share) for share in shares]
        self._work(parts, ask, took)

    def publish(self, parts: Sequence[Path], factory: str, recall_floor: float) -> None:
        """Publish what is derived from the documents of each partition, as many at once as this machine has cores."""

        def took(post: _Post, lines: Iterable[str]) -> bool:
            for line in lines:
                self._log(line if len(parts) == 1 else f"{post.part.name}: {line}")
            return False

        n_posts = min(len(parts), os.cpu_count() or 1)
        self._posts += [self._post(1) for _ in range(n_posts - len(self._posts))]
        self._work(parts, lambda post: post.writer.publish.remote(post.part, factory, recall_floor), took)

    def close(self) -> None:
        """End the processes."""
        for post in self._posts:
            ray.kill(post.writer)
        self._posts = []

    def _post(self, n_at_once: int) -> _Post:
        return _Post(n_at_once, self._started(n_at_once))

    def _started(self, n_at_once: int) -> Actor:
        # Processes of Ray have as many threads as they take cores; a writer has one, and mostly waits.
        made = ray.remote(PartitionWriter).options(num_cpus=0, scheduling_strategy=self._home)
        return made.remote(self._encoder, n_at_once, self._batch_chars)

    def _work(self, parts: Iterable[Path], ask: Callable[[_Post], Pending], took: Callable[[_Post, Any], bool]) -> None:
        """Work on partitions.

        Args:
            ask: calls a writer.
            took: handles the result; returns whether the writer is called again for its partition.
        """
        waiting, running = deque(parts), dict[Any, _Post]()
        for post in self._posts[: len(waiting)]:
            self._give(post, waiting.popleft())
            running[ask(post)] = post
        while running:
            (ready, *_), _ = ray.wait(list(running), num_returns=1)
            post = running.pop(ready)
            try:
                goes_on = took(post, fetched(ready))
            except DIED as error:
                self._replace(post, error)
                goes_on = True
            if not goes_on and waiting:
                self._give(post, waiting.popleft())
                goes_on = True
            if goes_on:
                running[ask(post)] = post

    def _give(self, post: _Post, part: Path) -> None:
        post.part, post.has_begun, post.n_deaths = part, False, 0

    def _replace(self, post: _Post, error: Exception) -> None:
        post.n_deaths += 1
        if post.n_deaths >= _MOST_DEATHS:
            raise ClusterError(
                f"the writer of {post.part} died {post.n_deaths} times in a row; what was committed is safe: look into "
                "the logs of Ray, then run the same command again to go on"
            ) from error
        self._log(f"the writer of {post.part.name} died; another one goes on")
        post.writer, post.has_begun = self._started(post.n_at_once), False


@contextmanager
def writer_pool(
    home: str, encoder: EncoderSettings, n_encoders: int, batch_chars: int, log: Callable[[str], None]
) -> Iterator[WriterPool]:
    """A pool whose processes end with the context; arguments as in `WriterPool`."""
    pool = WriterPool(home, encoder, n_encoders, batch_chars, log)
    try:
        yield pool
    finally:
        pool.close()
