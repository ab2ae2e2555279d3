"""The interface of a baseline that learns from texts alone, and how it scores pairs. No method of its own here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.pairs.scorer import Fit, Pair
from benchmarks.systems import Settings, System
from engine.document import Document


class TextBaseline(System, Protocol):
    """A `System` that is fitted on a corpus, and can compare any two of its documents."""

    def fit(self, documents: Iterable[Document], *, seconds: float = math.inf) -> Self:
        """Read a corpus once; each call starts anew. Learning may take at most `seconds`."""

    def score(self, first: str, second: str) -> float:
        """Finite; higher is closer. The names are those of documents that were fitted."""


class TextScorer:
    """A `PairScorer` that looks at no pair: a `TextBaseline` over the documents of all pairs.

    It reads the texts of test documents as well, never their judgments. Of the budget
    it keeps the seconds; steps and pairs are for those who learn from pairs.
    """

    encoder = ""
    is_trained = False
    course = None

    def __init__(self, make: Callable[[int], TextBaseline]) -> None:
        """Take a function from a seed to a baseline."""
        self._make = make
        self._baseline = make(0)

    @property
    def name(self) -> str:
        """The baseline's own."""
        return self._baseline.name

    @property
    def settings(self) -> Settings:
        """Those of the baseline, with the seed of the last `fit`."""
        return self._baseline.settings

    def fit(self, given: Fit) -> None:
        """As `PairScorer.fit`.

        Raises:
            TrainingError: it cannot be fitted within the seconds of the budget.
        """
        self._baseline = self._make(given.seed).fit(given.documents.values(), seconds=given.budget.seconds)

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """As `PairScorer.score`."""
        return np.array([self._baseline.score(pair.first, pair.second) for pair in pairs], np.float64)
