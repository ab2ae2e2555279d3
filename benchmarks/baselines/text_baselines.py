"""The baselines trained on texts only, by name: fitted on a corpus for retrieval, or as scorers of pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.hidden_topics import HiddenTopics
from benchmarks.baselines.lexical import TfIdf
from benchmarks.baselines.word_distances import WordMovers, WordRotators, WordVectorBaseline
from benchmarks.baselines.word_vectors import Texts, Word2VecConfig, WordVectors, read_texts, word_vectors
from benchmarks.pairs.scorer import Fit, Pair
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


T = TypeVar("T")

_MAKERS: Mapping[str, Callable[[int, Path | None], TextBaseline]] = {
    "tfidf": lambda _seed, _vectors: TfIdf(),
    "doc2vec": lambda seed, _vectors: Doc2Vec(Doc2VecConfig(seed=seed)),
    "wmd": lambda seed, vectors: WordMovers(vectors or Word2VecConfig(seed=seed)),
    "wrd": lambda seed, vectors: WordRotators(vectors or Word2VecConfig(seed=seed)),
    "hidden_topics": lambda seed, vectors: HiddenTopics(vectors or Word2VecConfig(seed=seed)),
}
TEXT_BASELINES = tuple(_MAKERS)


def text_baseline(name: str, *, seed: int = 0, vectors: Path | None = None) -> TextBaseline:
    """A baseline of `TEXT_BASELINES`, not fitted yet; `seed` and `vectors` as in `fitted_baselines`.

    Raises:
        DatasetError: the file of vectors cannot be read.
    """
    return _MAKERS[name](seed, vectors)


def text_scorer(name: str, vectors: Path | None = None) -> TextScorer:
    """A baseline of `TEXT_BASELINES` as a scorer of pairs; `vectors` as in `fitted_baselines`."""
    return TextScorer(lambda seed: text_baseline(name, seed=seed, vectors=vectors))


def fitted_baselines(
    names: Sequence[str],
    documents: Callable[[], Iterable[Document]],
    *,
    vectors: Path | None = None,
    seed: int = 0,
) -> Iterator[tuple[TextBaseline, BuildCost]]:
    """Yield baselines one by one, each ready to search a corpus.

    Word vectors are computed or read once; the cost of each baseline that uses them includes this time.

    Args:
        names: some of `TEXT_BASELINES`.
        documents: a new stream of the corpus at each call.
        vectors: a text file of word vectors; by default they are trained on the corpus.
        seed: of everything that is trained.

    Raises:
        MissingExtra: a package of the extra `baselines` is not installed.
        TrainingError: no word of the corpus is frequent enough.
        DatasetError: the file has no word vectors.
    """
    shared: tuple[Texts, WordVectors, float] | None = None
    for name in names:
        made = text_baseline(name, seed=seed, vectors=vectors)
        if not isinstance(made, WordVectorBaseline):
            _, seconds = _timed(partial(made.fit, documents()))
            yield made, BuildCost(round(seconds, 1))
            continue
        if shared is None:
            texts, reading = _timed(lambda: read_texts(documents()))
            known, learning = _timed(partial(word_vectors, vectors or Word2VecConfig(seed=seed), texts))
            shared = texts, known, reading + learning
        _, seconds = _timed(partial(made.fit_words, shared[0], shared[1]))
        yield made, BuildCost(round(shared[2] + seconds, 1))


def _timed(act: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    done = act()
    return done, time.perf_counter() - started
