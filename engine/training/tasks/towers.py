"""Both sides of a batch of pairs as tensors: its queries, its targets, and their relations. Defines no loss.

Letters in shapes: B queries, T targets, I chunks of a query (padded), J of a
target (padded), D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders.trainable import Embedded
from engine.training.selection import PairBatch
from engine.training.tasks.evidence import best_matches, chunk_weights


@dataclass(frozen=True)
class Towers:
    """The inputs of a loss over pairs, all on one device."""

    query_documents: Tensor  # (B, D) unit rows
    target_documents: Tensor  # (T, D) unit rows
    query_chunks: Tensor  # (B, I, D) unit rows, zero where padded
    target_chunks: Tensor  # (T, J, D)
    target_mask: Tensor  # (T, J) bool, True where a chunk is real
    weights: Tensor  # (B, I) of the query chunks, 0 where padded
    positives: Tensor  # (B, T) bool, True where a target belongs to a query
    excluded: Tensor  # (B, T) bool, True where it is neither positive nor negative
    teacher_scores: Tensor | None  # (B, T)

    @classmethod
    def of(cls, embedded: Embedded, pairs: PairBatch, teacher_scores: Tensor | None = None) -> Self:
        """Split the vectors of a batch.

        Args:
            embedded: of its queries, followed by its targets.
            pairs: the batch.
            teacher_scores: (B, T), on any device.
        """
        n, device = len(pairs.queries), embedded.documents.device
        weights = chunk_weights(pairs.queries).to(device)
        return cls(
            query_documents=normalize(embedded.documents[:n], dim=-1),
            target_documents=normalize(embedded.documents[n:], dim=-1),
            query_chunks=embedded.chunks[:n, : weights.shape[1]],
            target_chunks=embedded.chunks[n:],
            target_mask=embedded.mask[n:],
            weights=weights,
            positives=torch.from_numpy(pairs.positives).to(device),
            excluded=torch.from_numpy(pairs.excluded).to(device),
            teacher_scores=None if teacher_scores is None else teacher_scores.to(device),
        )

    @cached_property
    def best_matches(self) -> Tensor:
        """(B, I, T) in [-1, 1]: s_i(t), the best chunk of each target for each query chunk."""
        return best_matches(self.query_chunks, self.target_chunks, self.target_mask)

    def mean_best_match(self) -> Tensor:
        """(B, T) in [-1, 1]: mean best match of the query's chunks, weighted by `weights`."""
        shares = self.weights / self.weights.sum(1, keepdim=True)
        return (shares[:, None] @ self.best_matches).squeeze(1)

    def cosines(self) -> Tensor:
        """(B, T) cosines of the document vectors."""
        return self.query_documents @ self.target_documents.T
