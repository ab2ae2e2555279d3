"""The baselines that learn from texts alone, by name: fitted on a corpus for retrieval, or as scorers of pairs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.hidden_topics import HiddenTopics
from benchmarks.baselines.text_baseline import TextBaseline, TextScorer
from benchmarks.baselines.texts import Texts, read_texts
from benchmarks.baselines.tfidf_system import TfIdf
from benchmarks.baselines.vector_file import WordVectors
from benchmarks.baselines.wmd import WordMovers
from benchmarks.baselines.word_vector_baseline import WordVectorBaseline
from benchmarks.baselines.word_vectors import Word2VecConfig, word_vectors
from benchmarks.baselines.wrd import WordRotators
from benchmarks.systems import BuildCost
from engine.document import Document

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
    """Baselines, one after the other, ready to search a corpus.

    Word vectors are had once for all; what that took is in the cost of each that uses them.

    Args:
        names: some of `TEXT_BASELINES`.
        documents: a new stream of the corpus at each call.
        vectors: a text file of word vectors; by default they are trained on the corpus.
        seed: of what is trained.

    Raises:
        MissingExtra: a package of the extra `baselines` is not installed.
        TrainingError: no word of the corpus is frequent enough.
        DatasetError: the file holds no word vectors.
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
