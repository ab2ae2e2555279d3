"""Trains a model of gensim the same way each time: one worker, a seed, a time that it must keep."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from engine.errors import TrainingError


def train(model: Any, examples: Iterable[object], seconds: float) -> None:  # noqa: ANN401 - gensim carries no types
    """Count the words of examples, and train as many epochs as the model asks for.

    Args:
        model: `Word2Vec` or `Doc2Vec`, with one worker, for more give other vectors at each run.
        examples: what it learns from; gone through again and again.
        seconds: most that counting and training may take together, looked at after each epoch.

    Raises:
        TrainingError: no word is frequent enough, or all epochs take longer, which the first of them may show.
    """
    deadline = _Deadline(seconds)
    model.build_vocab(examples)
    if not model.wv.key_to_index:
        raise TrainingError(
            f"no word stands {model.min_count} times in these texts; lower min_count, or give more text"
        )
    model.train(examples, total_examples=model.corpus_count, epochs=model.epochs, callbacks=[deadline])


class _Deadline:
    """What gensim calls while it trains; its clock runs from when it is made."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._started = time.monotonic()
        self._counted = 0.0  # seconds before the first epoch
        self._n_epochs = 0

    def on_train_begin(self, model: Any) -> None:  # noqa: ANN401
        """Words are counted now."""
        self._counted = self._spent()

    def on_epoch_begin(self, model: Any) -> None:  # noqa: ANN401
        """An epoch that has begun is finished."""

    def on_epoch_end(self, model: Any) -> None:  # noqa: ANN401
        """Look at the clock; after the first epoch, whether the others can be made in time too."""
        self._n_epochs += 1
        spent = self._spent()
        needed = self._counted + (spent - self._counted) * model.epochs if self._n_epochs == 1 else spent
        if needed > self._seconds and self._n_epochs < model.epochs:
            raise TrainingError(
                f"{self._n_epochs} of {model.epochs} epochs took {spent:.0f} s, {self._seconds:.0f} s were given for "
                "all; ask for fewer epochs, or give more time"
            )

    def on_train_end(self, model: Any) -> None:  # noqa: ANN401
        """All epochs were in time."""

    def _spent(self) -> float:
        return time.monotonic() - self._started
