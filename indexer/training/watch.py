"""Reports a run in progress: each step with its numbers, all else in lines. Changes nothing about the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from torch import nn

from engine.training.run.history import MEAN, History
from engine.training.run.trainer import METRIC
from engine.training.task import Backward, BatchT, Task


@dataclass(frozen=True, slots=True)
class Step:
    """A finished training step."""

    number: int  # from 1
    of: int  # steps of the run
    loss: float
    tokens_per_second: float
    valid: float | None  # the last mean nDCG@10 on valid, where there is one


Log = Callable[[str], None]
Watch = Callable[[Step], None]


class Reporter:
    """Forwards the lines of a trainer, and its steps as numbers instead of lines."""

    def __init__(self, history_file: Path, steps: int, log: Log, watch: Watch) -> None:
        """Set the file of the trainer's history; steps are reported with its last value of valid."""
        self._history_file = history_file
        self._steps = steps
        self._log = log
        self._watch = watch
        self._valid: float | None = None
        self._is_stale = True

    def log(self, line: str) -> None:
        """Forward a line of the trainer, unless it is that of a step."""
        if not line.startswith("step "):
            self._is_stale = True
            self._log(line)

    def step(self, number: int, loss: float, tokens_per_second: float) -> None:
        """Report a finished step."""
        if self._is_stale:
            means = History.read(self._history_file).validation(METRIC).get(MEAN)
            self._valid = None if means is None else float(means.values[-1])
            self._is_stale = False
        self._watch(Step(number, self._steps, loss, tokens_per_second, self._valid))


class Watched(Generic[BatchT]):
    """A `Task` that reports its steps, and otherwise behaves as the wrapped task."""

    def __init__(self, task: Task[BatchT], reporter: Reporter, *, n_processes: int = 1) -> None:
        """Wrap a task, of which each process draws every n-th batch."""
        self._task = task
        self._n_processes = n_processes
        self._reporter = reporter
        self._number = 0
        self._started = 0.0
        self._loss = 0.0

    @property
    def module(self) -> nn.Module:
        """See `Task.module`."""
        return self._task.module

    def batch(self, step: int) -> BatchT:
        """See `Task.batch`."""
        self._number, self._started = step // self._n_processes + 1, time.perf_counter()
        return self._task.batch(step)

    def backward(self, batch: BatchT, backward: Backward) -> Mapping[str, float]:
        """See `Task.backward`."""
        parts = self._task.backward(batch, backward)
        self._loss = parts["loss"]
        return parts

    def n_tokens(self, batch: BatchT) -> int:
        """See `Task.n_tokens`; called once per step, when the parameters have been updated."""
        n_tokens = self._task.n_tokens(batch)
        seconds = max(time.perf_counter() - self._started, 1e-9)
        self._reporter.step(self._number, self._loss, n_tokens / seconds)
        return n_tokens
