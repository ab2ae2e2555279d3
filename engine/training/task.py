"""The interface of a training task: it has parameters, draws batches and computes gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engine.encoders.encoder import SegmentedDocument

BatchT = TypeVar("BatchT")

Backward = Callable[[Tensor], None]  # adds the gradients of a loss; `Tensor.backward`, or a scaled one


class Task(Protocol, Generic[BatchT]):
    """A training objective with its data.

    Batches are a function of seed and step alone, so a run that is resumed at step n
    continues exactly as if it had never stopped.
    """

    @property
    def module(self) -> nn.Module:
        """All trained parameters, including heads that only training needs."""

    def batch(self, step: int) -> BatchT:
        """Draw the batch of a step, from 0."""

    def n_tokens(self, batch: BatchT) -> int:
        """Tokens of a batch that the encoder reads, counted once even if a step reads them several times."""

    def backward(self, batch: BatchT, backward: Backward) -> Mapping[str, float]:
        """Compute the loss of a batch and add its gradients to the parameters.

        Returns:
            The parts of the loss by name; "loss" is the total.
        """


def tokens_read(documents: Iterable[SegmentedDocument]) -> int:
    """Tokens of the chunks of some documents, without special tokens."""
    return sum(document.coverage.tokens_read for document in documents)


def step_generator(seed: int, step: int) -> np.random.Generator:
    """Random numbers of one step, the same in every run."""
    return np.random.default_rng([seed, step])


def epoch_slice(n: int, size: int, step: int, seed: int) -> list[int]:
    """The positions, out of n, that a step reads: each once per epoch, in a new order in every epoch.

    Args:
        size: of a batch, at least 1; if n is smaller, all n are read.

    Returns:
        min(size, n) positions; an incomplete batch at the end of an epoch is left out.
    """
    size = min(size, n)
    epoch, at = divmod(step, n // size)
    order = np.random.default_rng([seed, epoch, n]).permutation(n)
    return [int(position) for position in order[at * size : (at + 1) * size]]


def full_precision(device: torch.device) -> torch.autocast:
    """Turn autocast off inside the context, for the products of a loss and for heads that only a loss uses.

    A loss divides differences of cosines by a temperature of about 0.05. The three digits of
    bfloat16 are too few for these differences. Encoders return vectors in float32, but the
    caller may have to convert hidden states.

    Returns:
        A context manager.
    """
    return torch.autocast(device.type, enabled=False)
