from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.pairs.scorer import Course, Pair
from benchmarks.pairs.selection import BestWeights, Selection, best_accuracy, sample_valid
from engine.errors import TrainingError

PAIRS = [Pair(f"a{number}", f"b{number}", number % 3 == 0) for number in range(30)]


def best_accuracy_by_hand(scores: list[float], pairs: list[Pair]) -> float:
    """Every threshold, one pair at a time."""
    return max(
        sum((score > threshold) == pair.is_match for score, pair in zip(scores, pairs, strict=True)) / len(pairs)
        for threshold in [-np.inf, *scores]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_best_accuracy_is_that_of_the_best_threshold(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 6, 30).astype(float).tolist()  # many are equal
    assert best_accuracy(scores, PAIRS) == pytest.approx(best_accuracy_by_hand(scores, PAIRS))


def test_a_score_that_is_no_number_ends_training() -> None:
    with pytest.raises(TrainingError, match="2 of 30 valid pairs have a score that is no finite number; lower the"):
        best_accuracy([float("nan"), float("inf"), *[0.0] * 28], PAIRS)


def test_valid_pairs_are_sampled_by_a_seed_as_many_of_either_kind() -> None:
    drawn = sample_valid(PAIRS, 8, seed=1)
    assert [pair.is_match for pair in drawn].count(True) == 4
    assert drawn == sample_valid(PAIRS, 8, seed=1) != sample_valid(PAIRS, 8, seed=2)
    assert [PAIRS.index(pair) for pair in drawn] == sorted(PAIRS.index(pair) for pair in drawn)
    assert sample_valid(PAIRS, 100, seed=1) == PAIRS


class Watched:
    """A module of one number, which each step raises; says one value after the other."""

    def __init__(self, values: list[float], *, patience: int = 9) -> None:
        self.module = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.module.weight)
        self.looked_at: list[float] = []
        self._values = values
        self.weights = BestWeights(self.module, self._validate, Selection(looks=3, patience=patience), steps=6)

    def _validate(self) -> float:
        self.looked_at.append(self.module.weight.item())
        return self._values[len(self.looked_at) - 1]

    def run(self, n_steps: int) -> Course:
        made = 0
        for step in range(n_steps):
            self.weights.watch(step)
            if self.weights.is_exhausted:
                break
            with torch.no_grad():
                self.module.weight += 1
            made += 1
        return self.weights.take(made)


def test_the_best_weights_are_taken() -> None:
    watched = Watched([0.5, 0.9, 0.6, 0.8])
    assert watched.run(6) == Course(n_steps=6, best_step=2, valid_accuracy=0.9)
    assert watched.looked_at == [0, 2, 4, 6]
    assert watched.module.weight.item() == 2


def test_the_last_weights_are_looked_at_wherever_it_ended_but_never_twice() -> None:
    watched = Watched([0.5, 0.6, 0.7])
    assert watched.run(3) == Course(3, 3, 0.7)
    assert watched.looked_at == [0, 2, 3]
    exhausted = Watched([0.5, 0.5, 0.5], patience=2)
    assert exhausted.run(6) == Course(4, 0, 0.5)
    assert exhausted.looked_at == [0, 2, 4]


def test_without_valid_pairs_the_last_weights_stay() -> None:
    module = nn.Linear(1, 1)
    assert BestWeights(module, None, Selection(), steps=6).take(4) == Course(4, 4, None)


def test_a_selection_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(TrainingError, match="1 pairs, 10 looks and a patience of 5 choose nothing; take at least 2"):
        Selection(pairs=1)
