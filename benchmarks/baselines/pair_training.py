"""The one loop that every neural baseline is trained in, under a budget; it knows no model and no text.

A batch costs the binary cross-entropy of its pairs. Where a paper has a softmax over the
two classes, this is the same: the logit is then the difference of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.baselines.pair_model import InputT, PairModel
from benchmarks.pairs.scorer import Budget, Course, Pair
from benchmarks.pairs.selection import BestWeights, Selection, best_accuracy, sample_valid
from engine.encoders.backbone.hardware import default_dtype
from engine.encoders.trainable import inference
from engine.errors import TrainingError


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
    Whichever part of the budget is spent first ends it; seconds are looked at between the parts of
    a batch, and a step that is not done by then is not made. Torch's own random numbers are drawn on, for dropout.

    Args:
        model: on the device where it is to be trained.
        inputs: of every document of the pairs, by doc_id.
        train: pairs of both kinds.
        valid: chooses the weights and when to stop; without any the last weights are kept.
        settings: see there.
        budget: see there.
        seed: of the order of pairs, and of which valid pairs are looked at.

    Raises:
        TrainingError: pairs are of one kind alone, the budget holds no step, or the loss is no number any more.
    """
    _check(train, budget)
    deadline = time.monotonic() + budget.seconds
    looked_at = sample_valid(valid, settings.selection.pairs, seed)
    batches = _batches(len(train), budget.pairs_per_step, np.random.default_rng(seed))
    optimizer = torch.optim.AdamW(_groups(model, settings))

    def validate() -> float:
        return best_accuracy(scores_of(model, inputs, looked_at, settings), looked_at)

    weights = BestWeights(model, validate if looked_at else None, settings.selection, budget.steps)
    n_steps = 0
    for step in range(budget.steps):
        weights.watch(step)
        if weights.is_exhausted:
            break
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * settings.rate_share(step, budget.steps)
        batch = [train[at] for at in next(batches)]
        if not _update(model, inputs, batch, optimizer, settings, step + 1, deadline):
            break
        n_steps += 1
    return weights.take(n_steps)


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


def _update(
    model: PairModel[InputT],
    inputs: Mapping[str, InputT],
    batch: Sequence[Pair],
    optimizer: torch.optim.Optimizer,
    settings: PairTraining,
    step: int,
    deadline: float,
) -> bool:
    """One step; False, and nothing is changed, where time is up before it is done."""
    model.train()
    optimizer.zero_grad(set_to_none=True)
    for start in range(0, len(batch), settings.pairs_at_once):
        if time.monotonic() >= deadline:
            return False
        part = batch[start : start + settings.pairs_at_once]
        with _precision(model.device, settings):
            logits = model([inputs[pair.first] for pair in part], [inputs[pair.second] for pair in part])
        labels = torch.tensor([float(pair.is_match) for pair in part], device=logits.device)
        loss = binary_cross_entropy_with_logits(logits.float(), labels, reduction="sum") / len(batch)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss of step {step} is {loss.item()}; lower the learning rate ({settings.learning_rate})"
            )
        torch.autograd.backward(loss)
    if time.monotonic() >= deadline:
        return False
    nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_norm)
    optimizer.step()
    return True


def _precision(device: torch.device, settings: PairTraining) -> torch.autocast:
    is_native = settings.mixed_precision and default_dtype(str(device)) is torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=is_native)


def _groups(model: nn.Module, settings: PairTraining) -> list[dict[str, object]]:
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    return [
        {"params": [weight for weight in learned if weight.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [weight for weight in learned if weight.dim() <= 1], "weight_decay": 0.0},
    ]


def _batches(n_pairs: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Positions of pairs, shuffled anew for each pass over them; what does not fill a batch waits for the next pass."""
    while True:
        order = rng.permutation(n_pairs)
        for start in range(0, max(1, n_pairs - size + 1), size):
            yield order[start : start + size]
