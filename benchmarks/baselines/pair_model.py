"""What a neural baseline is: a module that gives logits to pairs of documents. No training, no texts.

Letters in shapes: B pairs, N documents, D width of a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize

from benchmarks.pairs.scorer import Pair
from engine.training.tasks.objectives import ScaledCosine

InputT = TypeVar("InputT", bound=Sized)  # a document as a model reads it; its length says what it costs


class PairModel(nn.Module, ABC, Generic[InputT]):
    """Reads both documents of a pair together. It can rank again what something else has found, not be indexed."""

    @abstractmethod
    def forward(self, first: Sequence[InputT], second: Sequence[InputT]) -> Tensor:
        """Logits (B,) float32 of P(match) = sigmoid(logit), for B pairs."""

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return next(self.parameters()).device

    def scores(self, inputs: Mapping[str, InputT], pairs: Sequence[Pair], at_once: int) -> NDArray[np.float64]:
        """(B,) logits of pairs, in their order.

        Args:
            inputs: what is read of a document, by doc_id.
            pairs: to be scored.
            at_once: pairs of one pass; those of like length are taken together.
        """
        order = sorted(range(len(pairs)), key=lambda at: len(inputs[pairs[at].first]) + len(inputs[pairs[at].second]))
        scores = np.empty(len(pairs))
        for start in range(0, len(order), at_once):
            batch = order[start : start + at_once]
            first, second = ([inputs[doc_id] for doc_id in side] for side in _sides([pairs[at] for at in batch]))
            scores[batch] = self(first, second).float().cpu().numpy()
        return scores


class SiameseModel(PairModel[InputT]):
    """Reads each document by itself, both with the same weights; a head compares the two vectors."""

    head: nn.Module  # from (B, D) and (B, D) to (B,)

    @abstractmethod
    def encode(self, documents: Sequence[InputT]) -> Tensor:
        """The vectors (N, D) of N documents, of any length."""

    def forward(self, first: Sequence[InputT], second: Sequence[InputT]) -> Tensor:
        """See `PairModel.forward`."""
        rows = self.encode([*first, *second])
        logits: Tensor = self.head(rows[: len(first)], rows[len(first) :])
        return logits

    def scores(self, inputs: Mapping[str, InputT], pairs: Sequence[Pair], at_once: int) -> NDArray[np.float64]:
        """The same as `PairModel.scores`, with each document encoded once however many pairs it is in."""
        doc_ids = sorted(
            {doc_id for side in _sides(pairs) for doc_id in side}, key=lambda doc_id: (len(inputs[doc_id]), doc_id)
        )
        row = {doc_id: number for number, doc_id in enumerate(doc_ids)}
        batches = (doc_ids[start : start + 2 * at_once] for start in range(0, len(doc_ids), 2 * at_once))
        vectors = torch.cat([self.encode([inputs[doc_id] for doc_id in batch]) for batch in batches])
        first, second = (vectors[[row[doc_id] for doc_id in side]] for side in _sides(pairs))
        return np.asarray(self.head(first, second).float().cpu().numpy(), np.float64)


class CosineHead(nn.Module):
    """The logit a * cos + b, a and b learned; see `engine.training.tasks.objectives.ScaledCosine`."""

    def __init__(self, *, middle: float = 0.0) -> None:
        """Start with a = 6.

        Args:
            middle: the cosine that has probability one half at first. Vectors without negative numbers
                have no cosine below 0, and at 0 a loss would drive mismatches to vectors of nothing.
        """
        super().__init__()
        self.scaled = ScaledCosine()
        nn.init.constant_(self.scaled.bias, -middle * self.scaled.scale.item())

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Compare vectors row by row: (B, D) and (B, D) to (B,)."""
        cosine = (normalize(first.float(), dim=-1) * normalize(second.float(), dim=-1)).sum(-1)
        logits: Tensor = self.scaled(cosine)
        return logits


def n_parameters(model: nn.Module) -> int:
    """How many numbers are learned; a frozen table does not count."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def _sides(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    return [pair.first for pair in pairs], [pair.second for pair in pairs]
