"""Our own index type: that of a generation, found coarsely and rescored from the stored vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.vectors.candidate import value_of
from engine.encoders.encoder import Vectors
from engine.store.ann import AnnIndex, Ids, is_exact_factory, training_size
from indexer.generation.index_choice import BuildSizes


class GenerationIndex:
    """`engine.store.ann.AnnIndex`, trained and filled as a new generation is."""

    search_width = None

    def __init__(self, factory: str, *, seed: int) -> None:
        """Nothing is built yet.

        Args:
            factory: FAISS factory string of a generation.
            seed: of the training rows.
        """
        self.is_rescored = not is_exact_factory(factory)
        self._factory = factory
        self._seed = seed

    def build(self, rows: Vectors) -> None:
        """As `VectorIndex.build`."""
        sizes = BuildSizes()
        n = min(len(rows), training_size(self._factory, sizes.points_per_list))
        sample = np.sort(np.random.default_rng(self._seed).choice(len(rows), n, replace=False))
        size = sizes.block_chunks
        blocks = ((first, rows[first : first + size]) for first in range(0, len(rows), size))
        numbered = ((np.arange(first, first + len(block)), block) for first, block in blocks)
        self._index = AnnIndex.build(self._factory, rows.shape[1], lambda: rows[sample], numbered, n_vectors=len(rows))

    def set(self, setting: str) -> None:
        """As `VectorIndex.set`."""
        self._index.nprobe = value_of(setting) if setting else 0

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """As `VectorIndex.search`; similarities are those of the codes."""
        return self._index.search(queries, k)

    def write(self, path: Path) -> None:
        """As `VectorIndex.write`."""
        self._index.write(path)
