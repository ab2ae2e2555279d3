"""Where the vectors of each document are: the part of the catalog that every query needs. Reads no vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Roster:
    """Where the vectors of each document are; all arrays are (N,), in the order of catalog ids."""

    ids: NDArray[np.int64]
    shard: NDArray[np.int64]
    document_row: NDArray[np.int64]
    section_row: NDArray[np.int64]
    n_sections: NDArray[np.int64]
    chunk_row: NDArray[np.int64]
    first_chunk: NDArray[np.int64]
    n_chunks: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def moved(self, positions: NDArray[np.int64], **columns: NDArray[np.int64]) -> Roster:
        """A copy with other values in some columns of some documents.

        Args:
            positions: (R,) documents.
            columns: (R,) new values, by the name of the column.
        """
        changed = {name: getattr(self, name).copy() for name in columns}
        for name, values in columns.items():
            changed[name][positions] = values
        return replace(self, **changed)
