"""Words of a corpus and a vector for each: trained by gensim's word2vec.

Letters in shapes: V words, D width."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.packages import optional
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
