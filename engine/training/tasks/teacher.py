"""A stronger scorer to learn from: late interaction over the stored chunk vectors of another index."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.index import Index
from engine.training.selection import PairBatch


class Teacher(Protocol):
    """Scores the pairs of a batch."""

    def scores(self, batch: PairBatch) -> Tensor:
        """(B, T) float32 on the CPU, higher is closer; on the scale of a cosine."""


class IndexTeacher:
    """MaxSim over all chunks of both documents, as a stronger encoder stored them.

    s(q, t) = mean_i max_j <q_i, t_j> (Khattab & Zaharia 2020, arXiv:2004.12832, over
    chunks, and the mean in place of the sum). The student reads a few chunks
    of each document, the teacher all of them; their widths may differ.
    """

    def __init__(self, index: Index) -> None:
        """Read the vectors of `index`, which holds the documents of the corpus under the same doc_ids."""
        self._index = index

    def scores(self, batch: PairBatch) -> Tensor:
        """As `Teacher.scores`."""
        targets = [self._index.chunk_vectors(one.document.doc_id) for one in batch.targets]
        stacked = np.concatenate(targets)
        starts = np.cumsum([0, *map(len, targets)])[:-1]
        rows = [
            np.maximum.reduceat(self._index.chunk_vectors(one.document.doc_id) @ stacked.T, starts, axis=1).mean(0)
            for one in batch.queries
        ]
        return torch.from_numpy(np.stack(rows).astype(np.float32))
