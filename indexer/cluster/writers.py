"""The writer of a partition as an actor of Ray, on the machine of its folder; see `indexer.cluster.job`.

It holds the writer lock of the partition while it commits. If its process dies, the next writer finds in the catalog
which documents still have no vectors, and goes on there: nothing that was committed is encoded again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.errors import IndexBusy
from engine.readers import Unreadable
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.builder import refresh_generation
from indexer.building.pipeline import LOOKUP_CHARS, BatchSizes, Pipeline
from indexer.building.report import BuildReport
from indexer.cluster.encoders import EncoderSettings, spread, submitted
from indexer.generation.compaction import join_small_shards
from indexer.generation.disk import DiskGuard
from indexer.generation.new_generation import refresh_word_postings

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
        """Open nothing yet: an error here would be lost.

        Args:
            encoder: that the index is bound to.
            n_at_once: batches that are encoded for this partition at the same time.
            batch_chars: characters of the documents of a batch, see `stored_batches`.
        """
        self._encoder = encoder
        self._n_at_once = n_at_once
        self._sizes = BatchSizes(batch_chars, LOOKUP_CHARS)
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
        pipeline = Pipeline(writer, None, sizes=self._sizes)
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
            with Snapshot(folder) as snapshot:
                is_complete = bool(snapshot.has_vectors.all()) or snapshot.generation_row is not None
            if is_complete:
                refresh_generation(writer, factory, disk=disk, recall_floor=recall_floor, log=lines.append)
            refresh_word_postings(writer, disk)
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
