"""hnswlib: a graph over float32 rows."""

from __future__ import annotations

from pathlib import Path

import hnswlib
import numpy as np

from benchmarks.vectors.candidate import value_of
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class HnswlibIndex:
    """Its inner-product space; threads are given for building and for searching."""

    is_rescored = False

    def __init__(self, *, links: int, ef_construction: int, build_threads: int, threads: int, seed: int) -> None:
        """Nothing is built yet.

        Args:
            links: M, of a node.
            ef_construction: width of the search that builds.
            build_threads: for building.
            threads: for searching.
            seed: of the levels.
        """
        self._links = links
        self._ef_construction = ef_construction
        self._build_threads = build_threads
        self._threads = threads
        self._seed = seed
        self.search_width = ef_construction

    def build(self, rows: Vectors) -> None:
        """As `VectorIndex.build`."""
        self._index = hnswlib.Index(space="ip", dim=rows.shape[1])
        self._index.init_index(
            max_elements=len(rows), M=self._links, ef_construction=self._ef_construction, random_seed=self._seed
        )
        self._index.add_items(rows, np.arange(len(rows)), num_threads=self._build_threads)

    def set(self, setting: str) -> None:
        """As `VectorIndex.set`."""
        self.search_width = value_of(setting)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """As `VectorIndex.search`; it searches as widely as `k` where it was set to less, as hnswlib demands."""
        k = min(k, self._index.get_current_count())
        self._index.set_ef(max(self.search_width, k))
        labels, distances = self._index.knn_query(queries, k, num_threads=self._threads)
        return labels.astype(np.int64), 1 - distances

    def write(self, path: Path) -> None:
        """As `VectorIndex.write`."""
        self._index.save_index(str(path))
