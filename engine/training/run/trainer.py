"""The training loop of every task: updates, validation, early stopping, checkpoints, history. Defines no loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from engine.encoders.backbone.hardware import default_dtype
from engine.errors import MissingExtra, TrainingError
from engine.training.precision import full_precision
from engine.training.run.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from engine.training.run.history import CURVES_FILE, HISTORY_FILE, History
from engine.training.run.processes import Processes
from engine.training.run.validation import Validation
from engine.training.task import BatchT, Task

METRIC = "nDCG@10"
QUALITY, VALID = "quality", "valid"  # in the history, the metric and the corpus of `validate`
BEST_FOLDER = "best"
CHECKPOINT_FOLDER = "checkpoints"


@dataclass(frozen=True)
class TrainerSettings:
    """Length and speed of a run; the task defines the loss."""

    steps: int = 300
    learning_rate: float = 3e-5
    head_learning_rate: float | None = None  # of parameters outside the backbone; the same by default
    warmup_share: float = 0.1  # of the steps, in which the rate rises from 0
    weight_decay: float = 0.01  # not on biases and norms
    gradient_norm: float = 1.0  # longer gradients are clipped to this length
    validate_every: int = 50
    patience: int | None = None  # validations without a better mean before the run stops early; None: never
    checkpoint_every: int = 50
    mixed_precision: bool = True  # bfloat16 products where the device multiplies it natively
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            TrainingError: a number is out of its range.
        """
        counts = (self.steps, self.validate_every, self.checkpoint_every)
        if min(counts) < 1 or (self.patience is not None and self.patience < 1):
            raise TrainingError(
                f"{self.steps} steps, validation every {self.validate_every}, a checkpoint every "
                f"{self.checkpoint_every} and a patience of {self.patience} must each be at least 1"
            )
        rates = [self.learning_rate, self.learning_rate if self.head_learning_rate is None else self.head_learning_rate]
        if not (min(rates) > 0 and 0 <= self.warmup_share < 1):
            raise TrainingError(
                f"learning rate {self.learning_rate} and that of heads, {rates[1]}, must be above 0, "
                f"warm-up share {self.warmup_share} in [0, 1)"
            )
        if not (self.weight_decay >= 0 and self.gradient_norm > 0):
            raise TrainingError(
                f"weight decay {self.weight_decay} must be at least 0, gradient norm {self.gradient_norm} above 0"
            )


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    folder: Path  # of the best parameters; `load_encoder` reads it
    best_step: int  # 0 where training did not help
    steps: int  # updates made
    n_tokens: int  # read in training, repeated ones counted again
    seconds: float  # of updates, without validation
    history: History


class Saved(Protocol):
    """A model in training: an encoder, or another module that can save its parameters."""

    @property
    def module(self) -> nn.Module:
        """The module that holds the parameters."""

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the current parameters."""


class Trainer(Generic[BatchT]):
    """Runs a task, and keeps the parameters that are best on valid.

    AdamW with linear warm-up and linear decay. Every random number is a function
    of seed and step, so a run resumed from its last checkpoint ends with the same
    parameters, bit for bit, as one that never stopped (on the same machine, with the
    same number of threads). With P processes, started by `accelerate launch`, process p
    draws the batch P n + p at step n, and the gradients of all processes are averaged.
    The first process writes all files.
    """

    def __init__(
        self,
        task: Task[BatchT],
        encoder: Saved,
        folder: Path,
        settings: TrainerSettings,
        *,
        validations: Sequence[Validation] = (),
        validate: Callable[[], float] | None = None,
        stop: Callable[[int], bool] = lambda step: False,
        rate: Callable[[int, TrainerSettings], float] | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Prepare a run.

        Args:
            task: draws batches and computes gradients.
            encoder: the model to validate and save; its parameters are among the task's.
            folder: of the run: history, curves, checkpoints and the best parameters. A run
                that has checkpoints there is resumed.
            settings: see `TrainerSettings`.
            validations: corpora whose mean decides which parameters are the best; without
                any, and without `validate`, the last parameters are kept.
            validate: measures the current parameters, higher is better; in place of `validations`.
            stop: whether to end before the step of this number, from 0; the parameters are then validated and saved.
            rate: share of the learning rate at a step, by default `rate_share`.
            log: called with a line of progress now and then.

        Raises:
            MissingExtra: accelerate is not installed.
            TrainingError: two validations have the same name.
        """
        names = [validation.name for validation in validations]
        if len(set(names)) < len(names):
            raise TrainingError(
                f"validations have the names {', '.join(names)}, and one would hide the other; rename a folder"
            )
        self._task = task
        self._encoder = encoder
        self._folder = folder
        self._settings = settings
        self._validations = validations
        self._validate_by = validate
        self._stop = stop
        self._rate = rate or rate_share
        self._device = _device_of(task.module)
        self._processes = Processes(self._device)
        self._log = log if self._processes.is_first else lambda line: None
        self._optimizer = torch.optim.AdamW(_groups(task.module, encoder, settings), lr=settings.learning_rate)
        self._scheduled = [float(group["lr"]) for group in self._optimizer.param_groups]

    def run(self) -> Outcome:
        """Train to the end, from the last checkpoint if there is one.

        Raises:
            TrainingError: the loss or its gradient is not finite, or a checkpoint is damaged.
            EncoderError: the checkpoint is of another encoder.
        """
        progress = self._begin()
        is_last = progress.step >= self._settings.steps or self._is_exhausted(progress)
        while not is_last and not self._stop(progress.step):
            progress = self._step(progress)
            is_last = progress.step == self._settings.steps
            if self._is_validated and (is_last or progress.step % self._settings.validate_every == 0):
                progress = self._validate(progress)
                is_last = is_last or self._is_exhausted(progress)
            if is_last or progress.step % self._settings.checkpoint_every == 0:
                self._save(progress)
        if not is_last:  # stopped
            if self._is_validated and progress.step % self._settings.validate_every:
                progress = self._validate(progress)
            self._save(progress)
        return self._finish(progress)

    @property
    def _is_validated(self) -> bool:
        return bool(self._validations) or self._validate_by is not None

    def _begin(self) -> _Progress:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / HISTORY_FILE
        is_first = self._processes.is_first
        if latest_checkpoint(self._folder / CHECKPOINT_FOLDER) is not None:
            saved = load_checkpoint(self._folder / CHECKPOINT_FOLDER, self._task.module, self._optimizer)
            self._history = History.resume(file, saved.step) if is_first else History()
            self._log(f"continues after step {saved.step:,} of {self._settings.steps:,}")
            return _Progress(step=saved.step, **saved.extra)
        self._history = History.begin(file) if is_first else History()
        progress = _Progress(0, 0, 0.0, None, 0, 0)
        return self._validate(progress) if self._is_validated else progress

    def _is_exhausted(self, progress: _Progress) -> bool:
        patience = self._settings.patience
        return patience is not None and progress.n_worse >= patience

    def _step(self, progress: _Progress) -> _Progress:
        started = time.perf_counter()
        step, processes = progress.step, self._processes
        for group, scheduled in zip(self._optimizer.param_groups, self._scheduled, strict=True):
            group["lr"] = scheduled * self._rate(step, self._settings)
        # Each process draws its own batches, as if one machine took several steps at once.
        batch = self._task.batch(step * processes.n + processes.position)
        torch.manual_seed(torch_seed(self._settings.seed, step, processes.position))
        self._task.module.train()
        self._optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            parts = self._task.backward(batch, _backward)
        weights = list(self._task.module.parameters())
        processes.average_gradients(weights)  # before any check, so that no process waits for a stopped one
        self._check(step, "loss", parts["loss"])
        norm = nn.utils.clip_grad_norm_(weights, self._settings.gradient_norm)
        self._check(step, "length of the gradient", norm.item())
        self._optimizer.step()
        n_tokens = processes.sum(self._task.n_tokens(batch))
        return self._record(progress, parts, n_tokens, time.perf_counter() - started)

    def _autocast(self) -> torch.autocast:
        """A context with products in bfloat16, if the device multiplies it natively and the settings allow it."""
        is_native = default_dtype(str(self._device)) is torch.bfloat16
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._settings.mixed_precision and is_native)

    def _check(self, step: int, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise TrainingError(
                f"the {name} of step {step + 1} is {value}; lower the learning rate ({self._scheduled[0]}) "
                f"and run again: it goes on from the last checkpoint in {self._folder / CHECKPOINT_FOLDER}"
            )

    def _record(self, progress: _Progress, parts: Mapping[str, float], n_tokens: int, seconds: float) -> _Progress:
        progress = replace(
            progress,
            step=progress.step + 1,
            n_tokens=progress.n_tokens + n_tokens,
            seconds=progress.seconds + seconds,
        )
        if self._processes.is_first:
            self._history.add_step(
                progress.step,
                parts,
                learning_rate=self._optimizer.param_groups[0]["lr"],
                tokens_per_second=n_tokens / max(seconds, 1e-9),
                seconds=progress.seconds,
            )
            self._log(
                f"step {progress.step:,} of {self._settings.steps:,}: loss {parts['loss']:.4f}, "
                f"{n_tokens / max(seconds, 1e-9):,.0f} tokens/s"
            )
        return progress

    def _validate(self, progress: _Progress) -> _Progress:
        with self._autocast():
            own = {validation.name: validation.ndcg() for validation in self._validations}
            if self._validate_by is not None:
                own = {VALID: self._validate_by()}
        values = self._processes.from_first(own)  # rounding must not make one process stop alone
        mean = sum(values.values()) / len(values)
        is_best = progress.best is None or mean > progress.best
        if self._processes.is_first:
            metric = METRIC if self._validate_by is None else QUALITY
            self._history.add_validation(progress.step, metric, values)
            values_text = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
            self._log(
                f"valid {metric} after step {progress.step:,}: {values_text}; mean {mean:.4f}{' *' if is_best else ''}"
            )
            if is_best:
                self._encoder.save_pretrained(self._folder / BEST_FOLDER, dtype=torch.float32)
        if is_best:
            return replace(progress, best=mean, best_step=progress.step, n_worse=0)
        return replace(progress, n_worse=progress.n_worse + 1)

    def _save(self, progress: _Progress) -> None:
        if self._processes.is_first:
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
        if not self._is_validated:
            progress = replace(progress, best_step=progress.step)
        if self._processes.is_first:
            if not self._is_validated:
                self._encoder.save_pretrained(best, dtype=torch.float32)
            try:
                self._history.save_curves(self._folder / CURVES_FILE)
            except MissingExtra as missing:
                self._log(f"no picture of the curves: {missing}")
        self._processes.wait()
        history = self._history if self._processes.is_first else History.read(self._folder / HISTORY_FILE)
        return Outcome(best, progress.best_step, progress.step, progress.n_tokens, progress.seconds, history)


@dataclass(frozen=True, slots=True)
class _Progress:
    """The progress of a run."""

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


def _groups(module: nn.Module, encoder: Saved, settings: TrainerSettings) -> list[dict[str, Any]]:
    """Group the parameters by weight decay and by learning rate.

    Heads are the parameters outside the backbone or the sentence encoder of a SMITH, or outside an encoder
    that has neither. If heads have no learning rate of their own, the encoder is not divided, as in the
    checkpoints of such runs.
    """
    body: nn.Module = encoder.module
    if settings.head_learning_rate is not None:
        backbone = getattr(encoder, "backbone", None)
        body = getattr(encoder.module, "sentence", body) if backbone is None else backbone.model
    own = {id(weight) for weight in body.parameters()}
    groups: dict[tuple[bool, bool], list[Tensor]] = {}
    for weight in module.parameters():
        if weight.requires_grad:
            groups.setdefault((id(weight) in own, weight.dim() > 1), []).append(weight)
    head_rate = settings.learning_rate if settings.head_learning_rate is None else settings.head_learning_rate
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


def _backward(loss: Tensor) -> None:
    # The gradient of each product is computed in the precision of that product.
    with full_precision(loss.device):
        loss.backward()  # type: ignore[no-untyped-call]
