"""What the baselines over word vectors have in common: texts are read, vectors are had, documents become bags."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Self

from benchmarks.baselines.texts import Texts, read_texts
from benchmarks.baselines.vector_file import WordVectors
from benchmarks.baselines.word_bags import WordBag, WordCounter
from benchmarks.baselines.word_vectors import VectorSource, source_settings, word_vectors
from benchmarks.systems import Ranking, Settings
from engine.document import Document


class WordVectorBaseline(ABC):
    """A `TextBaseline` over word vectors.

    Any document can be asked with; a word of it that stands in no document of the corpus has no vector.
    """

    name: str
    encoder = ""

    def __init__(self, source: VectorSource, own: Settings, *, n_known: int | None = None) -> None:
        """Take where word vectors are from, the settings of the baseline itself, and `n_known` of a `WordCounter`.

        Raises:
            DatasetError: a file of vectors is named that cannot be read.
        """
        self.settings: Settings = {**own, **source_settings(source)}
        self._source = source
        self._n_known = n_known
        self._counter: WordCounter | None = None
        self._doc_ids: tuple[str, ...] = ()
        self._row: dict[str, int] = {}

    def fit(self, documents: Iterable[Document], *, seconds: float = math.inf) -> Self:
        """As `TextBaseline.fit`.

        Raises:
            MissingExtra: gensim is not installed.
            TrainingError: no word is frequent enough, or all epochs would not be made in time.
            DatasetError: the file of word vectors holds none.
        """
        started = time.monotonic()
        texts = read_texts(documents)
        left = seconds - (time.monotonic() - started)
        return self.fit_words(texts, word_vectors(self._source, texts, seconds=left))

    def fit_words(self, texts: Texts, vectors: WordVectors) -> Self:
        """The same with vectors that are there already; they must be of the source that the settings name."""
        self._doc_ids = texts.doc_ids
        self._row = {doc_id: row for row, doc_id in enumerate(texts.doc_ids)}
        self._counter = WordCounter(vectors, n_known=self._n_known)
        self._prepare(self._counter.bags(texts), vectors)
        return self

    def bag_of(self, query: Document) -> WordBag:
        """The known words of any document."""
        assert self._counter is not None, "fit comes before search"
        return self._counter.bags(read_texts([query]))[0]

    @abstractmethod
    def _prepare(self, bags: Sequence[WordBag], vectors: WordVectors) -> None:
        """Keep what comparing documents needs; the bag of row i is that of the i-th document."""

    @abstractmethod
    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a document without a known word finds nothing, and is not found."""

    @abstractmethod
    def score(self, first: str, second: str) -> float:
        """As `TextBaseline.score`."""
