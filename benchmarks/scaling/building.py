"""Growing an index and publishing its generation, each the work of a process of its own; answers are plain values."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scaling.folder import grow_folder, prepared_growth
from benchmarks.scaling.source import Source
from benchmarks.scaling.texts import TextModel
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.budget import left_beside
from indexer.generation.footprint import Footprint
from indexer.generation.new_generation import publish_generation, rungs_for
from indexer.generation.reference import refresh_reference


@dataclass(frozen=True)
class Real:
    """The real documents that are put in first, and grown."""

    index: Path
    n_documents: int | None  # a seeded sample of so many; None for all
    seed: int
    texts: Path | None = None  # index whose term statistics the words of made documents are drawn from

    def source(self, snapshot: Snapshot) -> Source:
        """Those documents of the open index."""
        whole = Source(snapshot)
        if self.n_documents is None or self.n_documents >= len(whole):
            return whole
        return whole.part(np.sort(np.random.default_rng(self.seed).permutation(len(whole))[: self.n_documents]))

    def named(self) -> tuple[str, int]:
        """The name of the index with the checksum of these documents, and how many chunks they have."""
        with Snapshot(self.index) as snapshot:
            source = self.source(snapshot)
            return f"{self.index.stem.partition('@')[0]}@{source.checksum}", int(source.n_chunks.sum())

    def folder_of(self, name: str) -> str:
        """What the index is called that is grown of them."""
        drawn = f"-words-{self.texts.stem.partition('@')[0]}" if self.texts is not None else ""
        return f"scale-{name}{drawn}-seed{self.seed}.lm"

    def text_model(self) -> TextModel | None:
        """What words are drawn from."""
        if self.texts is None:
            return None
        with Snapshot(self.texts) as snapshot:
            source = Source(snapshot)
            return TextModel.learn(source.checksum, source.words(np.arange(len(source))))


def grow(real: Real, folder: Path, n_chunks: int) -> dict[str, Any]:
    """Grow an index, in a process that does nothing else."""
    with Snapshot(real.index) as snapshot:
        growth, recipe = prepared_growth(folder, real.source(snapshot), real.seed, Source(snapshot), real.text_model())
        grown, n_added = grow_folder(folder, growth, recipe, n_chunks)
    return {"n_added": n_added, **asdict(grown)}


def publish(folder: Path, factory: str, memory_bytes: int | None, recall_floor: float) -> dict[str, Any]:
    """Pin a reference, and publish a generation over all documents, so that none is left to be scanned.

    A generation of these very documents and of this type is kept.

    Memory is what this process may take in all, as for `longmatch index`.
    """
    started = time.perf_counter()
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        refresh_reference(writer, lambda _: None)
        with Snapshot(folder) as snapshot:
            row, n_chunks = snapshot.generation_row, snapshot.n_chunks
            chosen = rungs_for(snapshot, factory, left)[-1].factory
        is_new = row is None or (row.n_vectors, row.factory) != (n_chunks, chosen)
        if is_new:
            publish_generation(writer, factory, left_bytes=left, recall_floor=recall_floor)
    return {"seconds": time.perf_counter() - started, "is_new": is_new}
