"""Pretraining with a queue of negatives, as in Contriever. Draws no views."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.precision import full_precision
from engine.training.task import Backward, tokens_read
from engine.training.tasks.objectives import info_nce
from engine.training.tasks.view_pairs import PairBatch, ViewPairs


class MomentumModule(nn.Module):
    """Both encoders and the queue, so that a resumed run has all three."""

    queue: Tensor  # (K, D) float32, unit rows
    owners: Tensor  # (K,) int64, position of the document of each row
    n_written: Tensor  # scalar int64, rows written so far

    def __init__(self, encoder: nn.Module, keys: nn.Module, queue_size: int, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.keys = keys.requires_grad_(False)
        self.register_buffer("queue", torch.zeros(queue_size, width))
        self.register_buffer("owners", torch.full((queue_size,), -1))
        self.register_buffer("n_written", torch.zeros((), dtype=torch.int64))


class MomentumContrast:
    """A `Task`: the views of earlier steps are the negatives.

    MoCo (He et al. 2020, arXiv:1911.05722, section 3) as Contriever trains it (Izacard et
    al. 2022, arXiv:2112.09118): queries are encoded with gradients, targets by a second
    encoder that follows the first one slowly,

        theta_k <- m theta_k + (1 - m) theta_q

    and the last K of them stay in a queue. Three departures: vectors are unit length, since
    search compares cosines (Contriever's code uses raw dot products); the other targets
    of the batch are negatives, too; and until the queue is full only its written rows
    count, where the code fills it with noise. Rows of the same document, from an
    earlier epoch, are not negatives.
    """

    def __init__(
        self,
        encoder: TrainableEncoder,
        pairs: ViewPairs,
        *,
        queue_size: int = 131_072,
        momentum: float = 0.9995,
        temperature: float = 0.05,
    ) -> None:
        """Hold an encoder and a copy of it.

        Args:
            encoder: its parameters are trained.
            pairs: segmented by the same encoder.
            queue_size: K, at least the batch size.
            momentum: m, in [0, 1).
            temperature: tau, above 0.

        Raises:
            TrainingError: a number is out of range.
        """
        if queue_size < pairs.batch_size:
            raise TrainingError(
                f"a queue of {queue_size} does not hold a batch of {pairs.batch_size}; give it some thousands"
            )
        if not (0 <= momentum < 1 and temperature > 0):
            raise TrainingError(
                f"momentum {momentum} must be in [0, 1), temperature {temperature} above 0; 0.9995 and 0.05 are usual"
            )
        self.encoder = encoder
        self.pairs = pairs
        self.momentum = momentum
        self.temperature = temperature
        self._keys = copy.deepcopy(encoder)
        device = next(encoder.module.parameters()).device
        self.module = MomentumModule(encoder.module, self._keys.module, queue_size, encoder.width).to(device)

    def batch(self, step: int) -> PairBatch:
        """See `Task.batch`."""
        return self.pairs.batch(step)

    def n_tokens(self, batch: PairBatch) -> int:
        """Tokens of both views; see `Task.n_tokens`."""
        return tokens_read((*batch.queries, *batch.targets))

    def backward(self, batch: PairBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; it also updates the second encoder and the queue."""
        self._follow()
        rows = self._write(batch)
        in_use = self.module.queue[: int(self.module.n_written)]
        owners = self.module.owners[: len(in_use)]
        queries = self.encoder.embed(batch.queries).documents
        with full_precision(queries.device):
            loss = info_nce(
                queries,
                in_use,
                rows,
                temperature=self.temperature,
                excluded=owners == self.module.owners[rows, None],
            )
        backward(loss)
        return {"loss": loss.item()}

    @torch.no_grad()
    def _follow(self) -> None:
        for key, query in zip(self.module.keys.parameters(), self.module.encoder.parameters(), strict=True):
            key.lerp_(query, 1 - self.momentum)

    @torch.no_grad()
    def _write(self, batch: PairBatch) -> Tensor:
        """Write the targets over the oldest rows of the queue; returns the positions of these rows, (B,)."""
        module = self.module
        targets = self._keys.embed(batch.targets).documents
        rows = (module.n_written + torch.arange(len(targets), device=targets.device)) % len(module.queue)
        module.queue[rows] = targets
        module.owners[rows] = torch.tensor(batch.positions, device=targets.device)
        module.n_written += len(targets)
        return rows
