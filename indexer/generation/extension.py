"""Adds new documents to the published generation, so that the cost depends on them and not on the whole index.

The trained lists and codes stay; the recall is measured again before anything is
published. With more than twice the vectors of the training, the generation is rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.errors import IndexDamaged, RecallTooLow
from engine.store.ann import AUTO, AnnIndex, index_bytes
from engine.store.durable import Checksum
from engine.store.snapshot import OpenGeneration, Snapshot
from engine.store.writer import Writer
from indexer.generation.disk import DiskGuard
from indexer.generation.index_choice import Rung
from indexer.generation.new_generation import Generation, Measured, build_postings, chunk_blocks, last_chunk, publish
from indexer.generation.recall import RECALL_FLOOR, RecallSample, tune

GROWTH = 2  # largest ratio of vectors to those at training for which the trained lists and codes are kept
EXTENSION_QUERIES = 48  # to measure the recall with
CHANCE = 0.015  # by which a sample of this size can underestimate recall; else each extension would raise nprobe


@dataclass(frozen=True, slots=True)
class Standing:
    """A published generation, and how much of it the present documents use."""

    factory: str
    n_vectors: int  # in the generation
    n_trained: int  # vectors that the index had when the generation was trained
    n_covered: int  # vectors in the generation whose documents are still in the index
    n_fresh: int  # chunks added later

    def takes_in(self, requested: str, built: str) -> bool:
        """Whether new documents can join.

        The generation must be of the requested type, hold no more vectors of removed
        documents than of others, and not grow beyond `GROWTH`.

        Args:
            requested: a factory string, or `auto`, which leaves the number of lists open.
            built: the factory string that would be built now.
        """
        is_type = _kind(self.factory) == _kind(built) if requested == AUTO else self.factory == requested
        return (
            self.n_fresh > 0
            and is_type
            and self.n_vectors <= 2 * self.n_covered
            and self.n_vectors + self.n_fresh <= GROWTH * self.n_trained
        )


def can_extend(snapshot: Snapshot, factory: str, rung: Rung, left_bytes: int | None) -> bool:
    """Whether the published generation can take the new documents, and they fit.

    Args:
        snapshot: of the index.
        factory: the requested factory string, or `auto`.
        rung: the index that would be built instead.
        left_bytes: memory that the process can still take; None is no limit.
    """
    row = snapshot.generation_row
    if row is None:
        return False
    n_fresh = int(snapshot.roster.n_chunks[snapshot.is_fresh(row.through_chunk)].sum())
    trained = snapshot.meta.get("trained_vectors", row.n_vectors)
    standing = Standing(row.factory, row.n_vectors, trained, snapshot.n_chunks - n_fresh, n_fresh)
    needed = index_bytes(row.factory, row.n_vectors + n_fresh, snapshot.width) + rung.work_bytes
    return standing.takes_in(factory, rung.factory) and (left_bytes is None or needed <= left_bytes)


def extend_generation(
    writer: Writer,
    rung: Rung,
    *,
    disk: DiskGuard | None = None,
    recall_floor: float = RECALL_FLOOR,
    seed: int = 0,
    log: Callable[[str], None] = lambda _: None,
) -> Generation | None:
    """Add the documents that are newer than the published generation, measure the recall, and publish.

    Args:
        writer: holds the index.
        rung: block sizes and working memory.
        disk: limit on the disk; by default all free space.
        recall_floor: least share of the exact top 10 documents that must be found.
        seed: of the measured queries.
        log: called with one line for each step.

    Returns:
        The new generation. None if the old one is damaged or the recall of the extended
        one is too low: nothing changed, and the generation must be rebuilt.

    Raises:
        BudgetExceeded: the disk does not hold it; nothing changed.
    """
    with Snapshot(writer.folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        fresh = np.flatnonzero(snapshot.is_fresh(row.through_chunk) & snapshot.has_vectors)
        log(f"adding {int(snapshot.roster.n_chunks[fresh].sum()):,} chunk vectors to {row.factory}")
        try:
            ann = AnnIndex.open(
                writer.folder / row.file,
                Checksum(row.size_bytes, row.digest),
                n_vectors=row.n_vectors,
                width=snapshot.width,
                nprobe=row.nprobe,
                is_mapped=False,
            )
        except IndexDamaged as error:
            log(f"rebuilding: {error}")
            return None
        ann.add(chunk_blocks(snapshot, fresh, rung.sizes.block_chunks))
        postings = None if row.is_exact else build_postings(snapshot)
        candidate = OpenGeneration(ann, last_chunk(snapshot), row.is_exact, postings)
        recall, n_queries = 1.0, 0
        if not row.is_exact:
            sample = RecallSample(
                snapshot,
                np.random.default_rng(seed),
                n_queries=EXTENSION_QUERIES,
                scan_chunks=rung.sizes.scan_chunks,
            )
            try:
                recall = tune(sample, candidate, recall_floor, log, row.nprobe, CHANCE)
                n_queries = len(sample)
            except RecallTooLow as error:
                log(f"rebuilding: {error}")
                return None
        trained = snapshot.meta.get("trained_vectors", row.n_vectors)
        measured = Measured(row.factory, recall, n_queries)
        return publish(writer, candidate, measured, disk or DiskGuard(writer.folder), trained_vectors=trained)


def _kind(factory: str) -> str:
    """A factory string without its number of lists."""
    return re.sub(r"IVF\d+", "IVF", factory)
