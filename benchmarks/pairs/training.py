"""Training within a budget, in which valid pairs choose the parameters and the end; the same for every scorer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from benchmarks.pairs.scoring import Course, Pair, accuracy_threshold, is_correct
from engine.errors import TrainingError
from engine.training.task import Task
from engine.training.trainer import Trainer, TrainerSettings


@dataclass(frozen=True, slots=True)
class Selection:
    """When valid pairs are scored, and how many of them."""

    pairs: int = 100  # at most, half of them matches; the same pairs each time
    looks: int = 10  # evaluations in the whole budget, evenly spread, at most; one more precedes the first step
    between: int = 20  # steps between two evaluations, at least: an evaluation takes as long as about ten steps
    patience: int = 5  # evaluations without a better accuracy before training ends early

    def __post_init__(self) -> None:
        """Check the ranges."""
        if min(self.pairs // 2, self.looks, self.patience) < 1:
            raise TrainingError(
                f"{self.pairs} pairs, {self.looks} looks and a patience of {self.patience} choose nothing; "
                "take at least 2 pairs, and 1 of the others"
            )


def sample_valid(valid: Sequence[Pair], n_pairs: int, seed: int) -> list[Pair]:
    """At most `n_pairs` random pairs in their order: up to half of them matches, up to half mismatches."""
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    for kind in (True, False):
        own = [at for at, pair in enumerate(valid) if pair.is_match is kind]
        chosen += [own[int(at)] for at in rng.permutation(len(own))[: n_pairs // 2]]
    return [valid[at] for at in sorted(chosen)]


def best_accuracy(scores: ArrayLike, pairs: Sequence[Pair]) -> float:
    """The accuracy at the best threshold for these (N,) scores, in [0.5, 1] if the pairs are balanced."""
    given = np.asarray(scores, np.float64)
    if not np.all(np.isfinite(given)):
        raise TrainingError(
            f"{np.count_nonzero(~np.isfinite(given))} of {given.size} valid pairs have a score that is no finite "
            "number; lower the learning rate"
        )
    labels = [pair.is_match for pair in pairs]
    return float(np.mean(is_correct(given, labels, accuracy_threshold(given, labels))))


class Trained(Protocol):
    """An encoder, or any other trained model."""

    @property
    def module(self) -> nn.Module:
        """The module with the parameters."""


def train_to_best(
    task: Task[Any],
    model: Trained,
    validate: Callable[[], float] | None,
    settings: TrainerSettings,
    *,
    selection: Selection,
    rate: Callable[[int, TrainerSettings], float] | None = None,
) -> Course:
    """Run the trainer of the engine; the model is left with the parameters of the best `validate`, or the last."""
    values: list[float] = []

    def look() -> dict[str, float]:
        assert validate is not None
        values.append(validate())
        return {"valid": values[-1]}

    every = min(settings.steps, max(selection.between, settings.steps // selection.looks))
    settings = replace(
        settings, validate_every=every, patience=selection.patience, checkpoint_every=max(1, settings.steps)
    )
    kept = _KeptInMemory(model)
    with tempfile.TemporaryDirectory() as folder:
        outcome = Trainer(task, kept, Path(folder), settings, validate=look if validate else None, rate=rate).run()
    kept.module.load_state_dict(kept.best)
    return Course(outcome.steps, outcome.best_step, max(values) if values else None, n_tokens=outcome.n_tokens)


class _KeptInMemory:
    """Keeps in memory the parameters that the trainer saves as its best."""

    def __init__(self, model: Trained) -> None:
        self.module = model.module
        self.backbone = getattr(model, "backbone", None)
        self.best: dict[str, Tensor] = {}

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        self.best = {name: weight.detach().clone() for name, weight in self.module.state_dict().items()}
