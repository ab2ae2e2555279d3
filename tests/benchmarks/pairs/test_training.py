from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from torch import nn

from benchmarks.pairs.scoring import Course, Pair
from benchmarks.pairs.training import Selection, best_accuracy, sample_valid, train_to_best
from engine.errors import TrainingError
from engine.training.task import Backward
from engine.training.trainer import TrainerSettings

PAIRS = [Pair(f"a{number}", f"b{number}", number % 3 == 0) for number in range(30)]


def test_a_score_that_is_no_number_ends_training() -> None:
    with pytest.raises(TrainingError, match="2 of 30 valid pairs have a score that is no finite number; lower the"):
        best_accuracy([float("nan"), float("inf"), *[0.0] * 28], PAIRS)


def test_valid_pairs_are_sampled_by_a_seed_as_many_of_either_kind() -> None:
    drawn = sample_valid(PAIRS, 8, seed=1)
    assert [pair.is_match for pair in drawn].count(True) == 4
    assert drawn == sample_valid(PAIRS, 8, seed=1) != sample_valid(PAIRS, 8, seed=2)
    assert [PAIRS.index(pair) for pair in drawn] == sorted(PAIRS.index(pair) for pair in drawn)
    assert sample_valid(PAIRS, 100, seed=1) == PAIRS


class Counting:
    """A `Task` and its model: one number, which each step raises; `validate` returns the given values in turn."""

    def __init__(self, values: Sequence[float]) -> None:
        self.module = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.module.weight)
        self.validated_at: list[float] = []
        self._values = values

    def batch(self, step: int) -> int:
        return step

    def n_tokens(self, batch: int) -> int:
        return 1

    def backward(self, batch: int, backward: Backward) -> Mapping[str, float]:
        backward(-self.module.weight.sum())
        return {"loss": 1.0}

    def validate(self) -> float:
        self.validated_at.append(round(self.module.weight.item()))
        return self._values[len(self.validated_at) - 1]

    def train(self, *, steps: int = 6, patience: int = 9, between: int = 1, is_validated: bool = True) -> Course:
        # Adam moves a number by the learning rate where gradients are all the same.
        settings = TrainerSettings(steps=steps, learning_rate=1.0, weight_decay=0.0)
        selection = Selection(looks=3, between=between, patience=patience)
        validate = self.validate if is_validated else None
        rate = lambda step, of: 1.0  # noqa: E731
        return train_to_best(self, self, validate, settings, selection=selection, rate=rate)


def test_the_best_weights_are_taken() -> None:
    task = Counting([0.5, 0.9, 0.6, 0.8])
    assert task.train() == Course(n_steps=6, best_step=2, valid_accuracy=0.9, n_tokens=6)
    assert task.validated_at == [0, 2, 4, 6]
    assert task.module.weight.item() == pytest.approx(2, abs=1e-3)


def test_evaluations_are_at_least_some_steps_apart() -> None:
    task = Counting([0.5, 0.9, 0.6])
    task.train(between=3)
    assert task.validated_at == [0, 3, 6]


@pytest.mark.slow
def test_patience_ends_training() -> None:
    task = Counting([0.5, 0.5, 0.5])
    assert task.train(patience=2) == Course(4, 0, 0.5, n_tokens=4)
    assert (task.validated_at, task.module.weight.item()) == ([0, 2, 4], 0)


def test_without_valid_pairs_the_last_weights_stay() -> None:
    task = Counting([])
    assert task.train(is_validated=False) == Course(6, 6, None, n_tokens=6)
    assert task.module.weight.item() == pytest.approx(6, abs=1e-3)


def test_a_selection_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(TrainingError, match="1 pairs, 10 looks and a patience of 5 choose nothing; take at least 2"):
        Selection(pairs=1)
