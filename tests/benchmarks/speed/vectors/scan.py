"""Exact scans as vector indexes: `Scan` can omit rows and round similarities, `Hungry` takes much memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.speed.vectors.index_types import VectorIndex
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class Scan(VectorIndex):
    """Multiplies with the rows it has; some are never found, and its similarities may be rounded."""

    def __init__(
        self, lost: slice = slice(0, 0), digits: int = 9, is_rescored: bool = False, search_width: int | None = None
    ) -> None:
        self.is_rescored = is_rescored
        self.search_width = search_width
        self._lost = lost
        self._digits = digits

    def build(self, rows: Vectors) -> None:
        self._rows = np.array(rows, np.float32)

    def set(self, setting: str) -> None:
        pass

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        similarities = np.round(queries @ self._rows.T, self._digits)
        similarities[:, self._lost] = -np.inf
        order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(similarities, order, axis=1)
        return np.where(np.isfinite(found), order, -1), found

    def write(self, path: Path) -> None:
        path.write_bytes(b"index")


class Hungry(Scan):
    """Takes 2 MiB for each query chunk while it searches, and 64 MiB while it builds."""

    def build(self, rows: Vectors) -> None:
        held = np.ones(8 << 20)
        super().build(rows)
        assert held[-1] == 1

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        held = np.ones((len(queries), 1 << 18))
        found = super().search(queries, k)
        assert held[-1, -1] == 1
        return found
