"""The baselines trained on texts only, by name: fitted on a corpus for retrieval, or as scorers of pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.lexical import TfIdf
from benchmarks.pair_scorer import Fit, Pair
from benchmarks.systems import BuildCost, Settings, System
from engine.text.document import Document


class TextBaseline(System, Protocol):
    """A `System` that is fitted on a corpus, and can compare any two of its documents."""

    def fit(self, documents: Iterable[Document]) -> Self:
        """Read a corpus once; each call replaces the previous corpus."""

    def score(self, first: str, second: str) -> float:
        """The finite score of two fitted documents, by doc_id; higher is closer."""


class TextScorer:
    """A `PairScorer` that does not learn from pairs: a `TextBaseline` over the documents of all pairs.

    It also reads the texts of test documents, but never their judgments. The budget applies only to
    scorers that learn from pairs.
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
        """The name of the baseline."""
        return self._baseline.name

    @property
    def settings(self) -> Settings:
        """The settings of the baseline, with the seed of the last `fit`."""
        return self._baseline.settings

    def fit(self, given: Fit) -> None:
        """As `PairScorer.fit`."""
        self._baseline = self._make(given.seed).fit(given.documents.values())

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """As `PairScorer.score`."""
        return np.array([self._baseline.score(pair.first, pair.second) for pair in pairs], np.float64)


_MAKERS: Mapping[str, Callable[[int], TextBaseline]] = {
    "tfidf": lambda _seed: TfIdf(),
    "doc2vec": lambda seed: Doc2Vec(Doc2VecConfig(seed=seed)),
}
TEXT_BASELINES = tuple(_MAKERS)


def text_baseline(name: str, *, seed: int = 0) -> TextBaseline:
    """A baseline of `TEXT_BASELINES`, not fitted yet."""
    return _MAKERS[name](seed)


def text_scorer(name: str) -> TextScorer:
    """A baseline of `TEXT_BASELINES` as a scorer of pairs."""
    return TextScorer(_MAKERS[name])


def fitted_baselines(
    names: Sequence[str], documents: Callable[[], Iterable[Document]], *, seed: int = 0
) -> Iterator[tuple[TextBaseline, BuildCost]]:
    """Yield baselines of `TEXT_BASELINES` one by one, each ready to search a corpus."""
    for name in names:
        started = time.perf_counter()
        made = text_baseline(name, seed=seed).fit(documents())
        yield made, BuildCost(round(time.perf_counter() - started, 1))
