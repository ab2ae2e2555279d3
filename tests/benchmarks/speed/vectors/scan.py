"""A vector index that multiplies with all rows, and can lose some or round what it tells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.encoders.encoder import Vectors
from engine.store.ann import Ids


class Scan:
    """Multiplies with the rows it has; some are never found, and its similarities may be rounded."""

    def __init__(
        self,
        lost: slice = slice(0, 0),
        *,
        digits: int = 9,
        is_rescored: bool = False,
        search_width: int | None = None,
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
