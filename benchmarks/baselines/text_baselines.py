"""The baselines trained on texts only, by name; Doc2Vec, and word2vec for word vectors, by gensim.

Letters in shapes: V words, D width."""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.lexical import TfIdf, ranking
from benchmarks.packages import optional
from benchmarks.systems import BuildCost, Ranking, Settings, System
from engine.encoders.encoder import Vectors, unit
from engine.errors import TrainingError
from engine.text.document import Document

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Texts:
    """The words of a corpus in reading order, as numbers."""

    doc_ids: tuple[str, ...]
    vocabulary: tuple[str, ...]  # by number, in the order of first use
    numbers: tuple[NDArray[np.uint32], ...]  # of each document


class Stretches:
    """Runs of words, each of one document; can be iterated several times.

    gensim silently drops the words of a text after the 10,000th.
    """

    def __init__(self, texts: Texts, longest: int = 10_000) -> None:
        """Cut texts into stretches of at most `longest` words."""
        self._texts = texts
        self._longest = longest

    def __iter__(self) -> Iterator[list[str]]:
        return (words for _, words in self.by_row())

    def by_row(self) -> Iterator[tuple[int, list[str]]]:
        """Each stretch with the row of its document."""
        words = self._texts.vocabulary
        for row, numbers in enumerate(self._texts.numbers):
            for first in range(0, len(numbers), self._longest):
                yield row, [words[number] for number in numbers[first : first + self._longest]]


def words_of(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and underscores."""
    return _WORD.findall(text.lower())


def read_texts(documents: Iterable[Document]) -> Texts:
    """Number the words of a stream of documents, including the titles and headings in their texts."""
    number_of: dict[str, int] = {}
    doc_ids: list[str] = []
    numbers: list[NDArray[np.uint32]] = []
    for document in documents:
        doc_ids.append(document.doc_id)
        own = (number_of.setdefault(word, len(number_of)) for word in words_of(document.text))
        numbers.append(np.fromiter(own, np.uint32))
    return Texts(tuple(doc_ids), tuple(number_of), tuple(numbers))


@dataclass(frozen=True)
class WordVectors:
    """Vectors of words, not normalised."""

    row: Mapping[str, int]  # of each word
    vectors: NDArray[np.float32]  # (V, D)


def train(model: Any, examples: Iterable[object]) -> None:  # noqa: ANN401 - gensim carries no types
    """Count the words of examples, and train for the epochs of the model."""
    model.build_vocab(examples)
    if not model.wv.key_to_index:
        raise TrainingError(
            f"no word stands {model.min_count} times in these texts; lower min_count, or give more text"
        )
    model.train(examples, total_examples=model.corpus_count, epochs=model.epochs)


@dataclass(frozen=True)
class Word2VecConfig:
    """Skip-gram with negative sampling (Mikolov et al. 2013, arXiv:1310.4546), trained by one worker.

    Width and skip-gram are as for the word vectors of ETM. A small corpus is read in ten epochs, a large one in
    fewer; see `epochs_over`. All other values are gensim's defaults.
    """

    width: int = 300
    window: int = 5
    min_count: int = 5  # rarer words have no vector
    negative: int = 5
    sample: float = 1e-3
    epochs: int = 10  # at most
    enough_words: int = 40_000_000  # in all epochs together; once they are read, no further epoch starts
    seed: int = 0

    def epochs_over(self, n_words: int) -> int:
        """The number of epochs over a corpus of `n_words` words: at least one."""
        return max(1, min(self.epochs, math.ceil(self.enough_words / max(1, n_words))))


def word_vectors(source: Word2VecConfig, texts: Texts) -> WordVectors:
    """Train vectors on texts."""
    models = optional("gensim.models", "word2vec", "gensim")
    model = models.Word2Vec(
        vector_size=source.width,
        window=source.window,
        min_count=source.min_count,
        negative=source.negative,
        sample=source.sample,
        epochs=source.epochs_over(sum(map(len, texts.numbers))),
        seed=source.seed,
        sg=1,
        workers=1,
    )
    train(model, Stretches(texts))
    return WordVectors(model.wv.key_to_index, model.wv.vectors)


@dataclass(frozen=True)
class Doc2VecConfig:
    """PV-DBOW that also trains word vectors, with the settings of Lau & Baldwin (2016, arXiv:1607.05368)."""

    width: int = 300
    window: int = 15
    min_count: int = 5
    negative: int = 5
    sample: float = 1e-5
    epochs: int = 20
    seed: int = 0


class Doc2Vec:
    """Ranks by the cosine of paragraph vectors (Le & Mikolov 2014, arXiv:1405.4053).

    A document of the corpus has its trained vector. The vector of any other document is inferred in the same number
    of epochs over its words, with all other parameters fixed. gensim reads only 10,000 words of a text, so longer
    documents are passed in stretches that share a vector.
    """

    name = "doc2vec"
    encoder = ""

    def __init__(self, config: Doc2VecConfig = Doc2VecConfig()) -> None:
        """Start without a corpus; `fit` reads one."""
        self.settings: Settings = {"model": "PV-DBOW with words", "workers": 1, **asdict(config)}
        self._config = config
        self._model: Any = None
        self._doc_ids: tuple[str, ...] = ()
        self._row: dict[str, int] = {}
        self._digests: list[bytes] = []
        self._vectors: Vectors = np.empty((0, config.width), np.float32)

    def fit(self, documents: Iterable[Document]) -> Doc2Vec:
        """As `TextBaseline.fit`; all words are read, stop words too."""
        models = optional("gensim.models.doc2vec", "the Doc2Vec baseline", "gensim")
        self._digests = []
        texts, config = read_texts(self._remembered(documents)), self._config
        self._model = models.Doc2Vec(
            dm=0,
            dbow_words=1,
            vector_size=config.width,
            window=config.window,
            min_count=config.min_count,
            negative=config.negative,
            sample=config.sample,
            epochs=config.epochs,
            seed=config.seed,
            workers=1,
        )
        train(self._model, _Tagged(Stretches(texts), models.TaggedDocument))
        self._doc_ids = texts.doc_ids
        self._row = {doc_id: row for row, doc_id in enumerate(texts.doc_ids)}
        known = np.array([word in self._model.wv.key_to_index for word in texts.vocabulary])
        vectors = np.zeros((len(texts.doc_ids), config.width), np.float32)
        for row, numbers in enumerate(texts.numbers):
            # Without a known word, the vector would still be its random initial value; it stays zero.
            if known[numbers].any():
                vectors[row] = self._model.dv[row]
        self._vectors = unit(vectors)
        return self

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; a query without a known word has no hits, and a target without one is never a hit."""
        own = self._row.get(query.doc_id)
        is_fitted = own is not None and self._digests[own] == _digest(query)
        asked = self._vectors[own] if is_fitted else self.infer(query)
        cosine = self._vectors @ asked
        cosine[~self._vectors.any(axis=1)] = -np.inf
        return ranking(self._doc_ids, cosine, k if asked.any() else 0, own=own, least=-np.inf)

    def score(self, first: str, second: str) -> float:
        """The cosine, in [-1, 1]; 0 where a document has no known word."""
        return float(self._vectors[self._row[first]] @ self._vectors[self._row[second]])

    def infer(self, document: Document) -> NDArray[np.float32]:
        """(width,) the unit vector of any document; zero where it has no known word.

        The same as gensim's `infer_vector`, except for two of its properties: it reads at most 10,000 words, and
        its initial vector is seeded by Python's hash, which differs between processes. Here the same document
        always has the same vector.
        """
        model, config = self._model, self._config
        known = [
            [word for word in words if word in model.wv.key_to_index] for words in Stretches(read_texts([document]))
        ]
        stretches = [words for words in known if words]
        vector = np.zeros((1, config.width), np.float32)
        if stretches:
            vector += (np.random.default_rng(config.seed).random(vector.shape) - 0.5) / config.width
            model.random.seed(config.seed)
            for rate in np.linspace(model.alpha, model.min_alpha, config.epochs):
                self._guess_words(stretches, vector, float(rate))
        found: NDArray[np.float32] = unit(vector)[0]
        return found

    def _guess_words(self, stretches: Sequence[Sequence[str]], vector: Vectors, rate: float) -> None:
        """One epoch; `vector` (1, width) is changed in place."""
        models = optional("gensim.models.doc2vec", "the Doc2Vec baseline", "gensim")
        for words in stretches:
            models.train_document_dbow(
                self._model,
                words,
                [0],
                rate,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vector,
                doctags_lockf=np.ones(1, np.float32),
            )

    def _remembered(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self._digests.append(_digest(document))
            yield document


class _Tagged:
    """Stretches of words, each tagged with the row of its document."""

    def __init__(self, stretches: Stretches, kind: Any) -> None:  # noqa: ANN401
        self._stretches = stretches
        self._kind = kind

    def __iter__(self) -> Iterator[Any]:
        return (self._kind(words, [row]) for row, words in self._stretches.by_row())


def _digest(document: Document) -> bytes:
    return hashlib.sha256(document.text.encode()).digest()


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
