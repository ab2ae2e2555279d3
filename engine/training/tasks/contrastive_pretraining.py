"""Contrastive pretraining on documents alone: the two views of a document are each other's positives in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.mean import TOKEN_BUDGET
from engine.encoders.trainable import Embedded, TrainableEncoder
from engine.errors import TrainingError
from engine.training.precision import full_precision
from engine.training.task import Backward, tokens_read
from engine.training.tasks.gradient_cache import GradientCache
from engine.training.tasks.masked_word_loss import MaskedWordLoss
from engine.training.tasks.objectives import info_nce
from engine.training.tasks.view_pairs import PairBatch, ViewPairs

_INITIAL_STD = 0.02


@dataclass(frozen=True, slots=True)
class ContrastiveConfig:
    """Settings of the loss; the defaults are those of DocSplit.

    Raises:
        TrainingError: a number is out of range.
    """

    temperature: float = 0.05
    symmetric: bool = False  # also rank the queries for each target
    mlm_weight: float = 0.1  # of the masked-word loss; 0 leaves it out
    mlp_head: bool = False  # a dense layer over the vectors, in training alone; as DocSplit and SimCSE with CLS
    group_tokens: int | None = None  # maximum tokens of a pass with cached gradients; None: one pass for the batch
    seed: int = 0  # of the heads

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not self.temperature > 0:
            raise TrainingError(f"temperature {self.temperature} must be above 0; 0.05 is usual")
        if not self.mlm_weight >= 0:
            raise TrainingError(f"mlm_weight {self.mlm_weight} must be 0 or above; 0.1 is usual")
        if self.group_tokens is not None and self.group_tokens < 1:
            raise TrainingError(
                f"groups of {self.group_tokens} tokens hold nothing; allow 4096, or what fits in memory"
            )


class ContrastivePretraining:
    """A `Task`: the objective of DocSplit, over the views of any sampler.

        L = mean_i -log( exp(cos(u_i, v_i) / tau) / sum_j exp(cos(u_i, v_j) / tau) ) + lambda L_mlm

    with u_i, v_i the document vectors of the two views of document i, tau = 0.05,
    lambda = 0.1; Gao et al. (2021, arXiv:2104.08821), eq. 1 and its auxiliary masked-word
    loss, which DocSplit follows. With DocSplit's partition it is DocSplit; with halves, crops,
    inverse cloze or the same text twice it is a method that the paper compares with.

    The paper does not say how it pools. SimCSE uses `mlp_head` over a backbone that pools by
    its first token; means, without the head, are our choice.
    """

    def __init__(
        self, encoder: TrainableEncoder, pairs: ViewPairs, config: ContrastiveConfig = ContrastiveConfig()
    ) -> None:
        """Prepare the encoder and its heads.

        Args:
            encoder: its parameters are trained.
            pairs: segmented by the same encoder.
            config: of the loss.

        Raises:
            TrainingError: `mlm_weight` is above 0, but the encoder has no backbone to predict words.
            EncoderError: `mlm_weight` is above 0, but the tokenizer has no [MASK].
        """
        self.encoder = encoder
        self.pairs = pairs
        self.config = config
        self.module = nn.ModuleDict({"encoder": encoder.module})
        self._projection: ProjectionHead | None = None
        self._backbone, self._words = None, None
        if config.mlp_head:
            generator = torch.Generator().manual_seed(config.seed)
            device = next(encoder.module.parameters()).device
            self._projection = ProjectionHead(encoder.width, generator).to(device)
            self.module["projection"] = self._projection
        if config.mlm_weight:
            self._backbone = _backbone_of(encoder)
            self._words = MaskedWordLoss(self._backbone, seed=config.seed)
            self.module["words"] = self._words

    def batch(self, step: int) -> PairBatch:
        """See `Task.batch`."""
        return self.pairs.batch(step)

    def n_tokens(self, batch: PairBatch) -> int:
        """Tokens of both views; see `Task.n_tokens`."""
        return tokens_read((*batch.queries, *batch.targets))

    def backward(self, batch: PairBatch, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`; the parts are "contrastive" and, if `mlm_weight` is above 0, "mlm"."""
        documents = [*batch.queries, *batch.targets]
        if self.config.group_tokens is None:
            loss = self._loss(self.encoder.embed(documents))
            backward(loss)
        else:
            cache = GradientCache(self.encoder, group_tokens=self.config.group_tokens)
            loss = cache.backward(documents, self._loss, backward)
        parts = {"contrastive": loss.item(), "loss": loss.item()}
        if self._words is not None and self._backbone is not None:
            parts["mlm"] = self._words.backward(
                self._backbone,
                [ids for document in documents for ids in document.token_ids],
                backward,
                weight=self.config.mlm_weight,
                token_budget=self.config.group_tokens or TOKEN_BUDGET,
                seed=batch.seed,
            )
            parts["loss"] += self.config.mlm_weight * parts["mlm"]
        return parts

    def _loss(self, embedded: Embedded) -> Tensor:
        vectors = embedded.documents
        with full_precision(vectors.device):
            if self._projection is not None:
                vectors = self._projection(vectors)
            queries, targets = vectors.chunk(2)
            return info_nce(
                queries,
                targets,
                torch.arange(len(queries), device=vectors.device),
                temperature=self.config.temperature,
                symmetric=self.config.symmetric,
            )


class ProjectionHead(nn.Module):
    """unit(tanh(W sqrt(D) v + b)), a dense layer that only training uses.

    The input of SimCSE's head is the output of a layer norm, of length near sqrt(D);
    a unit vector is scaled to that length.
    """

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=_INITIAL_STD, generator=generator)
        nn.init.zeros_(self.dense.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, D) unit rows to (B, D) unit rows."""
        states = vectors * vectors.shape[-1] ** 0.5
        return nn.functional.normalize(self.dense(states).tanh(), dim=-1)


def _backbone_of(encoder: TrainableEncoder) -> Backbone:
    backbone = getattr(encoder, "backbone", None)
    if not isinstance(backbone, Backbone):
        raise TrainingError(
            f"an encoder of kind {encoder.kind!r} has no backbone that guesses words; set mlm_weight to 0"
        )
    return backbone
