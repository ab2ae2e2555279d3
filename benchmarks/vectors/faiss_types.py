"""FAISS by itself: any type that a factory string names, trained on all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss

from benchmarks.vectors.candidate import value_of
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class FaissIndex:
    """`index_factory` and `ParameterSpace`, inner product."""

    is_rescored = False
    search_width: int | None = None

    def __init__(self, factory: str, *, ef_construction: int) -> None:
        """Nothing is built yet.

        Args:
            factory: FAISS factory string.
            ef_construction: width of the search that builds a graph, where the type is one.
        """
        self._factory = factory
        self._ef_construction = ef_construction
        self._parameters: Any = faiss.ParameterSpace()  # its stubs know only one of the two calls

    def build(self, rows: Vectors) -> None:
        """As `VectorIndex.build`."""
        self._index: Any = faiss.index_factory(rows.shape[1], self._factory, faiss.METRIC_INNER_PRODUCT)
        if "HNSW" in self._factory:
            self._parameters.set_index_parameters(self._index, f"efConstruction={self._ef_construction}")
        self._index.train(rows)
        self._index.add(rows)

    def set(self, setting: str) -> None:
        """As `VectorIndex.set`."""
        if setting:
            self._parameters.set_index_parameters(self._index, setting)
        if "HNSW" in self._factory:
            self.search_width = value_of(setting)

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        """As `VectorIndex.search`."""
        D, I = self._index.search(queries, min(k, self._index.ntotal))  # noqa: E741
        return I, D

    def write(self, path: Path) -> None:
        """As `VectorIndex.write`."""
        faiss.write_index(self._index, str(path))
