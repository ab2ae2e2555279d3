from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from benchmarks.pairs.early_stopping import train_to_best
from benchmarks.pairs.scorer import Course
from benchmarks.pairs.selection import Selection
from engine.training.run.trainer import TrainerSettings
from engine.training.tasks.fine_tuning import FineTuning
from tests.training.made import assert_equal, small_fine_tuning, weights_of

SETTINGS = TrainerSettings(steps=6, learning_rate=1e-3, checkpoint_every=6)


class Values:
    """Says one value after the other, and keeps the weights that it was asked about."""

    def __init__(self, task: FineTuning, values: list[float]) -> None:
        self._task = task
        self._values = values
        self.seen: list[dict[str, Tensor]] = []

    def __call__(self) -> float:
        self.seen.append(weights_of(self._task.encoder.module))
        return self._values[len(self.seen) - 1]


def run(
    folder: Path,
    task: FineTuning,
    validate: Callable[[], float] | None,
    *,
    looks: int = 6,
    patience: int = 9,
    seconds: float = 600,
) -> Course:
    selection = Selection(looks=looks, patience=patience)
    return train_to_best(task, task.encoder, validate, folder, SETTINGS, selection=selection, seconds=seconds)


def test_the_best_weights_on_valid_are_kept(bert_folder: Path, tmp_path: Path) -> None:
    task = small_fine_tuning(bert_folder)
    values = Values(task, [0.5, 0.9, 0.6, 0.8])  # before the first step, after 2, 4 and 6
    assert run(tmp_path, task, values, looks=3) == Course(n_steps=6, best_step=2, valid_accuracy=0.9)
    assert_equal(weights_of(task.encoder.module), values.seen[1])
    assert len(values.seen) == 4


def test_it_stops_when_nothing_gets_better(bert_folder: Path, tmp_path: Path) -> None:
    task = small_fine_tuning(bert_folder)
    values = Values(task, [0.7] * 3)
    assert run(tmp_path, task, values, patience=2) == Course(n_steps=2, best_step=0, valid_accuracy=0.7)
    assert len(values.seen) == 3


def test_time_that_is_up_ends_it(bert_folder: Path, tmp_path: Path) -> None:
    task = small_fine_tuning(bert_folder)
    before = weights_of(task.encoder.module)
    assert run(tmp_path, task, Values(task, [0.5]), seconds=0).n_steps == 0
    assert_equal(weights_of(task.encoder.module), before)


def test_without_validation_the_last_weights_are_kept(bert_folder: Path, tmp_path: Path) -> None:
    one, other = small_fine_tuning(bert_folder), small_fine_tuning(bert_folder)
    assert run(tmp_path / "one", one, None) == Course(6, 6, None)
    rising = Values(other, [float(number) for number in range(7)])
    assert run(tmp_path / "other", other, rising).best_step == 6
    assert_equal(weights_of(one.encoder.module), weights_of(other.encoder.module))
