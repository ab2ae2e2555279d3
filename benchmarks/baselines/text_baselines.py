"""The baselines trained on texts only, by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from benchmarks.baselines.lexical import TfIdf
from benchmarks.systems import BuildCost, System
from engine.text.document import Document


class TextBaseline(System, Protocol):
    """A `System` that is fitted on a corpus, and can compare any two of its documents."""

    def fit(self, documents: Iterable[Document]) -> Self:
        """Read a corpus once; each call replaces the previous corpus."""

    def score(self, first: str, second: str) -> float:
        """The finite score of two fitted documents, by doc_id; higher is closer."""


_MAKERS: Mapping[str, Callable[[int], TextBaseline]] = {
    "tfidf": lambda _seed: TfIdf(),
    "doc2vec": lambda seed: Doc2Vec(Doc2VecConfig(seed=seed)),
}
TEXT_BASELINES = tuple(_MAKERS)


def text_baseline(name: str, *, seed: int = 0) -> TextBaseline:
    """A baseline of `TEXT_BASELINES`, not fitted yet."""
    return _MAKERS[name](seed)


def fitted_baselines(
    names: Sequence[str], documents: Callable[[], Iterable[Document]], *, seed: int = 0
) -> Iterator[tuple[TextBaseline, BuildCost]]:
    """Yield baselines of `TEXT_BASELINES` one by one, each ready to search a corpus."""
    for name in names:
        started = time.perf_counter()
        made = text_baseline(name, seed=seed).fit(documents())
        yield made, BuildCost(round(time.perf_counter() - started, 1))
