"""Steps are reported as numbers, with the last figure on valid; other lines are logged as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.training.run.history import History
from engine.training.task import Backward, Task
from indexer.training.watch import Reporter, Step, Watched


class Line:
    """A task of one linear layer, whose batch is the number of the step."""

    def __init__(self) -> None:
        self.module = nn.Linear(1, 1)

    def batch(self, step: int) -> int:
        return step

    def n_tokens(self, batch: int) -> int:
        return 10

    def backward(self, batch: int, backward: Backward) -> Mapping[str, float]:
        backward(torch.ones(()))
        return {"loss": float(batch)}


def test_a_watched_task_runs_its_inner_task_and_reports_each_step(tmp_path: Path) -> None:
    steps: list[Step] = []
    History.begin(tmp_path / "history.csv")
    inner = Line()
    task: Task[int] = Watched(inner, Reporter(tmp_path / "history.csv", 9, lambda line: None, steps.append))
    losses: list[torch.Tensor] = []
    batch = task.batch(3)
    assert task.module is inner.module and task.backward(batch, losses.append) == {"loss": 3.0} and len(losses) == 1
    assert not steps  # the parameters are not updated yet
    assert task.n_tokens(batch) == 10
    (step,) = steps
    assert (step.number, step.of, step.loss, step.valid) == (4, 9, 3.0, None) and step.tokens_per_second > 0


def test_the_last_figure_on_valid_is_that_of_the_history(tmp_path: Path) -> None:
    steps: list[Step] = []
    lines: list[str] = []
    history = History.begin(tmp_path / "history.csv")
    reporter = Reporter(tmp_path / "history.csv", 9, lines.append, steps.append)
    for value in (0.25, 0.5):
        history.add_validation(0, "nDCG@10", {"papers": value, "rfc": value + 0.25})
        reporter.log(f"valid {value}")
        reporter.log("step 1 of 9: loss 3")
        reporter.step(1, 3.0, 100.0)
    assert [step.valid for step in steps] == pytest.approx([0.375, 0.625])
    assert lines == ["valid 0.25", "valid 0.5"]
