"""The engine's trainer within a budget, by which valid pairs choose the weights: steps, seconds, best accuracy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic

from torch import nn

from benchmarks.pairs.scorer import Course
from benchmarks.pairs.selection import BestWeights, Selection
from engine.encoders.trainable import TrainableEncoder
from engine.training.run.trainer import Trainer, TrainerSettings
from engine.training.task import Backward, BatchT, Task


class _StopTraining(Exception):
    """Ends a run of the trainer from inside its task; never leaves this module."""


class EarlyStopping(Generic[BatchT]):
    """A `Task` that is the one inside, and has the weights looked at.

    The trainer validates by ranking, which is another task than telling pairs apart; and
    knows no end of time. Both are looked after here, where a trainer asks for its next batch.
    """

    def __init__(self, task: Task[BatchT], weights: BestWeights, seconds: float) -> None:
        """Wrap a task.

        Args:
            task: trains the encoder.
            weights: looks at those of the encoder.
            seconds: of updates and looks together, from now on.
        """
        self._task = task
        self._weights = weights
        self._deadline = time.monotonic() + seconds
        self.n_steps = 0  # updates made

    @property
    def module(self) -> nn.Module:
        """See `Task.module`."""
        return self._task.module

    def batch(self, step: int) -> BatchT:
        """See `Task.batch`; weights are looked at before the first step, and every few steps."""
        self._weights.watch(step)
        if time.monotonic() >= self._deadline or self._weights.is_exhausted:
            raise _StopTraining
        return self._task.batch(step)

    def backward(self, batch: BatchT, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        return self._task.backward(batch, backward)

    def n_tokens(self, batch: BatchT) -> int:
        """See `Task.n_tokens`; asked for once, when the weights have been updated."""
        self.n_steps += 1
        return self._task.n_tokens(batch)


def train_to_best(
    task: Task[BatchT],
    encoder: TrainableEncoder,
    validate: Callable[[], float] | None,
    folder: Path,
    settings: TrainerSettings,
    *,
    selection: Selection,
    seconds: float,
) -> Course:
    """Run the engine's trainer, and leave the encoder with the weights that were best on valid.

    Args:
        task: trains the encoder.
        encoder: as it is before training, and best after.
        validate: how good the encoder is now; higher is better. None keeps the last weights.
        folder: for what the trainer writes; new.
        settings: of the trainer; the learning rate falls to 0 at the last of its steps, sooner stopped or not.
        selection: when valid pairs are looked at, and when that ends it.
        seconds: of updates and looks; a step that has begun is finished.

    Raises:
        TrainingError: the loss is no number any more.
        MissingExtra: accelerate is not installed.
    """
    weights = BestWeights(encoder.module, validate, selection, settings.steps)
    watched = EarlyStopping(task, weights, seconds)
    with suppress(_StopTraining):
        Trainer(watched, encoder, folder, settings).run()
    return weights.take(watched.n_steps)
