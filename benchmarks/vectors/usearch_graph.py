"""usearch: a graph over rows in float32, half precision or bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from usearch.index import Index

from benchmarks.vectors.candidate import value_of
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class UsearchIndex:
    """Its cosine metric; threads are given for building and for searching."""

    is_rescored = False

    def __init__(self, *, links: int, ef_construction: int, dtype: str, build_threads: int, threads: int) -> None:
        """Nothing is built yet.

        Args:
            links: `connectivity`, of a node.
            ef_construction: `expansion_add`, width of the search that builds.
            dtype: "f32", "f16" or "i8", of the rows it keeps.
            build_threads: for building.
            threads: for searching.
        """
        self._links = links
        self._ef_construction = ef_construction
        self._dtype = dtype
        self._build_threads = build_threads
        self._threads = threads
        self.search_width = ef_construction

    def build(self, rows: Vectors) -> None:
        """As `VectorIndex.build`."""
        self._index = Index(
            ndim=rows.shape[1],
            metric="cos",
            dtype=self._dtype,
            connectivity=self._links,
            expansion_add=self._ef_construction,
        )
        self._index.add(np.arange(len(rows)), rows, threads=self._build_threads)

    def set(self, setting: str) -> None:
        """As `VectorIndex.set`."""
        self.search_width = value_of(setting)
        self._index.expansion_search = self.search_width

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """As `VectorIndex.search`."""
        k = min(k, len(self._index))
        found = self._index.search(queries, k, threads=self._threads)
        keys = np.asarray(found.keys).reshape(len(queries), -1).astype(np.int64)
        similarities = 1 - np.asarray(found.distances, np.float32).reshape(keys.shape)
        # Of a list that it could not fill, the rest holds no keys but zeros; a single query gets what there is.
        counts = np.broadcast_to(getattr(found, "counts", keys.shape[1]), len(queries))
        is_empty = np.arange(keys.shape[1]) >= counts[:, None]
        return np.where(is_empty, -1, keys), np.where(is_empty, -np.inf, similarities).astype(np.float32)

    def write(self, path: Path) -> None:
        """As `VectorIndex.write`."""
        self._index.save(str(path))
