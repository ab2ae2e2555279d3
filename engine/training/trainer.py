"""The loop that every task runs in: updates, validation, early stop, checkpoints, records. It knows no loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

import numpy as np
import torch
from torch import Tensor, nn

from engine.encoders.backbone import default_dtype
from engine.encoders.trainable import TrainableEncoder
from engine.errors import MissingExtra, TrainingError
from engine.training.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from engine.training.history import CURVES_FILE, HISTORY_FILE, History
from engine.training.task import BatchT, Task
from engine.training.validation import Validation

METRIC = "nDCG@10"
BEST_FOLDER = "best"
CHECKPOINT_FOLDER = "checkpoints"


@dataclass(frozen=True)
class TrainerSettings:
    """How long and how fast; what is minimised is the task's."""

    steps: int = 300
    learning_rate: float = 3e-5
    head_learning_rate: float | None = None  # of weights outside the encoder; the same by default
    warmup_share: float = 0.1  # of the steps, in which the rate rises from 0
    weight_decay: float = 0.01  # not on biases and norms
    gradient_norm: float = 1.0  # longer gradients are cut to it
    validate_every: int = 50
    patience: int | None = None  # validations without a better mean before it stops early
    checkpoint_every: int = 50
    mixed_precision: bool = True  # bfloat16 products where the device multiplies it natively
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            TrainingError: a number is out of its range.
        """
        if min(self.steps, self.validate_every, self.checkpoint_every) < 1:
            raise TrainingError(
                f"{self.steps} steps, validation every {self.validate_every} and a checkpoint every "
                f"{self.checkpoint_every} must each be at least 1"
            )
        if not (self.learning_rate > 0 and 0 <= self.warmup_share < 1):
            raise TrainingError(
                f"learning rate {self.learning_rate} must be above 0, warm-up share {self.warmup_share} in [0, 1)"
            )


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    folder: Path  # of the best weights; `load_encoder` takes it
    best_step: int  # 0 where training did not help
    steps: int  # updates made
    n_tokens: int  # read in training, repeated ones counted again
    seconds: float
    history: History


class Trainer(Generic[BatchT]):
    """Runs a task, and keeps the weights that are best on valid.

    AdamW with linear warm-up and linear decay. Every random number is a function
    of seed and step, so that a run taken up from its last checkpoint ends with
    the same weights, bit for bit, as one that never stopped (on the same machine
    and number of threads). With several processes, started by `accelerate launch`,
    each draws its own batches and gradients are averaged.
    """

    def __init__(
        self,
        task: Task[BatchT],
        encoder: TrainableEncoder,
        folder: Path,
        settings: TrainerSettings,
        *,
        validations: Sequence[Validation] = (),
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Prepare a run.

        Args:
            task: draws batches and makes gradients.
            encoder: what is validated and saved; its weights are among the task's.
            folder: of the run: history, curves, checkpoints and the best weights. One
                that holds checkpoints is taken up where it stopped.
            settings: see there.
            validations: corpora whose mean decides which weights are the best; without
                any the last weights are kept.
            tell: hears a line of progress now and then.

        Raises:
            MissingExtra: accelerate is not installed.
        """
        self._task = task
        self._encoder = encoder
        self._folder = folder
        self._settings = settings
        self._validations = validations
        self._tell = tell
        self._accelerator = _accelerator(_device_of(task.module), settings)
        self._optimizer = torch.optim.AdamW(_groups(task.module, encoder.module, settings), lr=settings.learning_rate)
        self._scheduled = [float(group["lr"]) for group in self._optimizer.param_groups]

    def run(self) -> Outcome:
        """Train to the end, from the last checkpoint where there is one.

        Raises:
            TrainingError: the loss is no number any more, or a checkpoint is damaged.
            EncoderError: the checkpoint is of another encoder.
        """
        progress = self._begin()
        while progress.step < self._settings.steps and not self._is_exhausted(progress):
            progress = self._step(progress)
            is_last = progress.step == self._settings.steps
            if self._validations and (is_last or progress.step % self._settings.validate_every == 0):
                progress = self._validate(progress)
            if is_last or progress.step % self._settings.checkpoint_every == 0:
                self._save(progress)
        return self._finish(progress)

    def _begin(self) -> _Progress:
        self._folder.mkdir(parents=True, exist_ok=True)
        if latest_checkpoint(self._folder / CHECKPOINT_FOLDER) is not None:
            saved = load_checkpoint(self._folder / CHECKPOINT_FOLDER, self._task.module, self._optimizer)
            self._history = History.resume(self._folder / HISTORY_FILE, saved.step)
            self._tell(f"goes on after step {saved.step:,} of {self._settings.steps:,}")
            return _Progress(step=saved.step, **saved.extra)
        self._history = History.begin(self._folder / HISTORY_FILE)
        progress = _Progress(0, 0, 0.0, None, 0, 0)
        return self._validate(progress) if self._validations else progress

    def _is_exhausted(self, progress: _Progress) -> bool:
        patience = self._settings.patience
        return patience is not None and progress.n_worse >= patience

    def _step(self, progress: _Progress) -> _Progress:
        started = time.perf_counter()
        step, accelerator = progress.step, self._accelerator
        for group, scheduled in zip(self._optimizer.param_groups, self._scheduled, strict=True):
            group["lr"] = scheduled * rate_share(step, self._settings)
        # Each process its own batches, as if one machine had taken several steps at once.
        batch = self._task.batch(step * accelerator.num_processes + accelerator.process_index)
        torch.manual_seed(torch_seed(self._settings.seed, step, accelerator.process_index))
        self._task.module.train()
        self._optimizer.zero_grad(set_to_none=True)
        with accelerator.autocast():
            parts = self._task.backward(batch, accelerator.backward)
        if not math.isfinite(parts["loss"]):
            raise TrainingError(
                f"the loss of step {step + 1} is {parts['loss']}; lower the learning rate ({self._scheduled[0]}) "
                f"and run again: it goes on from the last checkpoint in {self._folder / CHECKPOINT_FOLDER}"
            )
        self._average_gradients()
        nn.utils.clip_grad_norm_(self._task.module.parameters(), self._settings.gradient_norm)
        self._optimizer.step()
        return self._record(progress, parts, self._task.n_tokens(batch), time.perf_counter() - started)

    def _average_gradients(self) -> None:
        if self._accelerator.num_processes == 1:
            return
        for weight in self._task.module.parameters():
            if weight.requires_grad:
                own = torch.zeros_like(weight) if weight.grad is None else weight.grad
                weight.grad = self._accelerator.reduce(own, "mean")

    def _record(self, progress: _Progress, parts: Mapping[str, float], n_tokens: int, seconds: float) -> _Progress:
        progress = replace(
            progress,
            step=progress.step + 1,
            n_tokens=progress.n_tokens + n_tokens * self._accelerator.num_processes,
            seconds=progress.seconds + seconds,
        )
        if self._accelerator.is_main_process:
            self._history.add_step(
                progress.step,
                parts,
                learning_rate=self._optimizer.param_groups[0]["lr"],
                tokens_per_second=n_tokens / max(seconds, 1e-9),
                seconds=progress.seconds,
            )
            self._tell(
                f"step {progress.step:,} of {self._settings.steps:,}: loss {parts['loss']:.4f}, "
                f"{n_tokens / max(seconds, 1e-9):,.0f} tokens/s"
            )
        return progress

    def _validate(self, progress: _Progress) -> _Progress:
        with self._accelerator.autocast():
            values = {validation.name: validation.ndcg() for validation in self._validations}
        mean = sum(values.values()) / len(values)
        is_best = progress.best is None or mean > progress.best
        if self._accelerator.is_main_process:
            self._history.add_validation(progress.step, METRIC, values)
            told = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
            self._tell(f"valid {METRIC} after step {progress.step:,}: {told}; mean {mean:.4f}{' *' if is_best else ''}")
            if is_best:
                self._encoder.save_pretrained(self._folder / BEST_FOLDER, dtype=torch.float32)
        if is_best:
            return replace(progress, best=mean, best_step=progress.step, n_worse=0)
        return replace(progress, n_worse=progress.n_worse + 1)

    def _save(self, progress: _Progress) -> None:
        if self._accelerator.is_main_process:
            save_checkpoint(
                self._folder / CHECKPOINT_FOLDER,
                progress.step,
                self._task.module,
                self._optimizer,
                {
                    "n_tokens": progress.n_tokens,
                    "seconds": progress.seconds,
                    "best": progress.best,
                    "best_step": progress.best_step,
                    "n_worse": progress.n_worse,
                },
            )

    def _finish(self, progress: _Progress) -> Outcome:
        best = self._folder / BEST_FOLDER
        if self._accelerator.is_main_process:
            if not self._validations:
                self._encoder.save_pretrained(best, dtype=torch.float32)
                progress = replace(progress, best_step=progress.step)
            try:
                self._history.save_curves(self._folder / CURVES_FILE)
            except MissingExtra as missing:
                self._tell(f"no picture of the curves: {missing}")
        return Outcome(best, progress.best_step, progress.step, progress.n_tokens, progress.seconds, self._history)


@dataclass(frozen=True, slots=True)
class _Progress:
    """Where a run stands."""

    step: int
    n_tokens: int
    seconds: float
    best: float | None
    best_step: int
    n_worse: int  # validations since the best


def torch_seed(*numbers: int) -> int:
    """One seed from several numbers, the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def rate_share(step: int, settings: TrainerSettings) -> float:
    """Share of the learning rate at a step, in (0, 1]: linear warm-up, then linear decay towards 0."""
    warmup = settings.warmup_share * settings.steps
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (settings.steps - step) / max(settings.steps - warmup, 1)


def _groups(module: nn.Module, encoder: nn.Module, settings: TrainerSettings) -> list[dict[str, Any]]:
    """Weights by whether they decay, and by learning rate."""
    own = {id(weight) for weight in encoder.parameters()}
    groups: dict[tuple[bool, bool], list[Tensor]] = {}
    for weight in module.parameters():
        if weight.requires_grad:
            groups.setdefault((id(weight) in own, weight.dim() > 1), []).append(weight)
    head_rate = settings.head_learning_rate or settings.learning_rate
    return [
        {
            "params": weights,
            "lr": settings.learning_rate if is_own else head_rate,
            "weight_decay": settings.weight_decay if decays else 0.0,
        }
        for (is_own, decays), weights in groups.items()
    ]


def _device_of(module: nn.Module) -> torch.device:
    return next(module.parameters()).device


def _accelerator(device: torch.device, settings: TrainerSettings) -> Any:  # noqa: ANN401
    try:
        from accelerate import Accelerator
    except ModuleNotFoundError as error:
        raise MissingExtra("training", "accelerate", "training") from error
    is_native = default_dtype(str(device)) is torch.bfloat16
    precision = "bf16" if settings.mixed_precision and is_native else "no"
    return Accelerator(mixed_precision=precision, cpu=device.type == "cpu")
