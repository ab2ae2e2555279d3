from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.baselines import gensim_training
from benchmarks.baselines.gensim_training import train
from engine.errors import TrainingError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Gensim:
    """What gensim's models do with the time: five seconds to count words, two an epoch."""

    def __init__(self, clock: Clock, *, epochs: int) -> None:
        self.wv = SimpleNamespace(key_to_index={"word": 0})
        self.epochs, self.corpus_count = epochs, 1
        self.n_epochs = 0
        self._clock = clock

    def build_vocab(self, examples: object) -> None:
        self._clock.now += 5

    def train(self, examples: object, *, total_examples: int, epochs: int, callbacks: list[Any]) -> None:
        (deadline,) = callbacks
        deadline.on_train_begin(self)
        for _ in range(epochs):
            deadline.on_epoch_begin(self)
            self._clock.now += 2
            self.n_epochs += 1
            deadline.on_epoch_end(self)
        deadline.on_train_end(self)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(gensim_training, "time", clock)
    return clock


def test_counting_words_is_part_of_the_time(clock: Clock) -> None:
    model = Gensim(clock, epochs=10)
    train(model, [], seconds=25)
    assert (model.n_epochs, clock.now) == (10, 125.0)


def test_the_first_epoch_shows_that_all_would_take_too_long(clock: Clock) -> None:
    model = Gensim(clock, epochs=10)
    with pytest.raises(TrainingError, match="1 of 10 epochs took 7 s, 24 s were given for all; ask for fewer epochs"):
        train(model, [], seconds=24)
    assert model.n_epochs == 1
