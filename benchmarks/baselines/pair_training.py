"""Training of every neural baseline by the trainer of the engine, under a budget; it knows no model and no text.

A batch costs the binary cross-entropy of its pairs. Where a paper has a softmax over the
two classes, this is the same: the logit is then the difference of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.baselines.pair_model import InputT, PairModel
from benchmarks.pairs.scorer import Budget, Course, Pair
from benchmarks.pairs.selection import Selection, best_accuracy, sample_valid, train_to_best
from engine.encoders.backbone.hardware import default_dtype
from engine.encoders.trainable import inference
from engine.errors import TrainingError
from engine.training.run.trainer import TrainerSettings
from engine.training.task import Backward, epoch_slice


@dataclass(frozen=True, slots=True)
class PairTraining:
    """How a baseline is trained; how long is the budget's.

    Raises:
        TrainingError: a number is out of its range.
    """

    learning_rate: float = 1e-3
    warmup_share: float = 0.0  # of the budget's steps, in which the rate rises from 0
    decays: bool = False  # the rate falls to 0 over the budget's steps
    weight_decay: float = 0.0  # of matrices; biases, norms and single numbers have none
    gradient_norm: float = 5.0  # longer gradients are cut to it
    pairs_at_once: int = 32  # of one pass; a larger batch is read in several, with the same gradient
    selection: Selection = field(default_factory=Selection)  # when valid pairs are looked at
    mixed_precision: bool = False  # bfloat16 products where the device multiplies it natively

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.pairs_at_once < 1:
            raise TrainingError(f"pairs_at_once is {self.pairs_at_once}; it must be at least 1")
        if not (self.learning_rate > 0 and self.gradient_norm > 0):
            raise TrainingError(
                f"learning rate {self.learning_rate} and gradient norm {self.gradient_norm} must be above 0"
            )
        if not (0 <= self.warmup_share < 1 and self.weight_decay >= 0):
            raise TrainingError(
                f"warm-up share {self.warmup_share} must lie in [0, 1), weight decay {self.weight_decay} be at least 0"
            )

    def rate_share(self, step: int, steps: int) -> float:
        """Share of the learning rate at update `step`, counted from 0, of at most `steps`; in (0, 1]."""
        warmup = max(1.0, self.warmup_share * steps)
        return min(1.0, (step + 1) / warmup) * (1 - step / steps if self.decays else 1.0)


def train_pairs(
    model: PairModel[InputT],
    inputs: Mapping[str, InputT],
    train: Sequence[Pair],
    valid: Sequence[Pair],
    *,
    settings: PairTraining,
    budget: Budget,
    seed: int,
) -> Course:
    """Train a model in place, and leave it with the weights of the best accuracy on valid.

    Adam (Kingma & Ba 2015, arXiv:1412.6980), with decoupled weight decay where there is any.
    Whichever part of the budget is spent first ends it.

    Args:
        model: on the device where it is to be trained.
        inputs: of every document of the pairs, by doc_id.
        train: pairs of both kinds.
        valid: chooses the weights and when to stop; without any the last weights are kept.
        settings: see there.
        budget: see there.
        seed: of the order of pairs, of dropout, and of which valid pairs are looked at.

    Raises:
        TrainingError: pairs are of one kind alone, the budget holds no step, or the loss is no number any more.
    """
    _check(train, budget)
    looked_at = sample_valid(valid, settings.selection.pairs, seed)

    def validate() -> float:
        return best_accuracy(scores_of(model, inputs, looked_at, settings), looked_at)

    trainer = TrainerSettings(
        steps=budget.steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        gradient_norm=settings.gradient_norm,
        mixed_precision=settings.mixed_precision,
        seed=seed,
    )
    return train_to_best(
        _PairTask(model, inputs, train, budget.pairs_per_step, settings.pairs_at_once, seed),
        _Model(model),
        validate if looked_at else None,
        trainer,
        selection=settings.selection,
        seconds=budget.seconds,
        rate=lambda step, of: settings.rate_share(step, of.steps),
    )


@dataclass(frozen=True)
class _Model:
    module: nn.Module


@dataclass(frozen=True)
class _PairTask(Generic[InputT]):
    """The `Task` of pairs: each costs its binary cross-entropy."""

    module: PairModel[InputT]
    inputs: Mapping[str, InputT]
    train: Sequence[Pair]
    size: int  # pairs of a batch
    at_once: int  # of one pass
    seed: int

    def batch(self, step: int) -> list[Pair]:
        return [self.train[at] for at in epoch_slice(len(self.train), self.size, step, self.seed)]

    def n_tokens(self, batch: Sequence[Pair]) -> int:
        return sum(len(self.inputs[doc_id]) for pair in batch for doc_id in (pair.first, pair.second))

    def backward(self, batch: Sequence[Pair], backward: Backward) -> Mapping[str, float]:
        """In parts, with the gradient of the whole."""
        total = 0.0
        for start in range(0, len(batch), self.at_once):
            part = batch[start : start + self.at_once]
            logits = self.module(
                [self.inputs[pair.first] for pair in part], [self.inputs[pair.second] for pair in part]
            )
            labels = torch.tensor([float(pair.is_match) for pair in part], device=logits.device)
            loss = binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum") / len(batch)
            backward(loss)
            total += loss.item()
        return {"loss": total}


def scores_of(
    model: PairModel[InputT], inputs: Mapping[str, InputT], pairs: Sequence[Pair], settings: PairTraining
) -> NDArray[np.float64]:
    """(N,) logits, without gradients or dropout, in the precision of training."""
    with inference(model), _precision(model.device, settings):
        return model.scores(inputs, pairs, settings.pairs_at_once)


def _check(train: Sequence[Pair], budget: Budget) -> None:
    n_matches = sum(pair.is_match for pair in train)
    if n_matches in (0, len(train)):
        raise TrainingError(
            f"of {len(train)} training pairs {n_matches} match; both kinds are needed: build the pairs again"
        )
    if min(budget.steps, budget.pairs_per_step) < 1:
        raise TrainingError(
            f"a budget of {budget.steps} steps of {budget.pairs_per_step} pairs trains nothing; give at least 1 of each"
        )


def _precision(device: torch.device, settings: PairTraining) -> torch.autocast:
    is_native = settings.mixed_precision and default_dtype(str(device)) is torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=is_native)
