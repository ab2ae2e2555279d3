"""Words of a corpus and a vector for each: trained by gensim's word2vec, or read from a text file.

Letters in shapes: V words, D width."""

from __future__ import annotations

import gzip
import hashlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DatasetError
from benchmarks.packages import optional
from benchmarks.systems import Settings
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
    ranks: NDArray[np.int64]  # (V,) places in the whole source, from 0; the most frequent word is first


def read_vectors(file: Path, wanted: Collection[str]) -> WordVectors:
    """Read the vectors of some words; gensim would load all vectors, and accepts lines of any length.

    Args:
        file: each line is a word and its numbers, separated by spaces; the first line can have the
            numbers of words and of values instead, as word2vec writes it. A file that ends in .gz is decompressed.
        wanted: other words are skipped. If a word occurs twice, the first line is used.

    Raises:
        DatasetError: a line is malformed, or the file has none of the wanted words.
    """
    row: dict[str, int] = {}
    ranks: list[int] = []
    vectors: list[NDArray[np.float32]] = []
    rank = -1
    try:
        for rank, (word, numbers) in enumerate(_lines(file)):
            if word in wanted and word not in row:
                row[word] = len(row)
                ranks.append(rank)
                vectors.append(np.array(numbers, np.float32))
    except (OSError, EOFError, ValueError) as error:
        raise DatasetError(
            f"{file} cannot be read as word vectors, near word {rank + 1:,}: {error}; "
            "give a text file with a word and its numbers a line"
        ) from error
    if not row:
        raise DatasetError(
            f"{file} has vectors of {rank + 1:,} words, of which none is among the {len(wanted):,} wanted; "
            "give vectors of the same language, in lower case"
        )
    return WordVectors(row, np.stack(vectors), np.array(ranks))


def _lines(file: Path) -> Iterator[tuple[str, list[str]]]:
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        width = 0
        for number, line in enumerate(lines):
            # A no-break space can be part of a word.
            fields = line.strip(" \r\n").split(" ")
            if number == 0 and len(fields) == 2:
                width = int(fields[1])
                continue
            width = width or len(fields) - 1
            if not 0 < width < len(fields):
                raise ValueError(f"the next line holds {len(fields) - 1} numbers, the first {width}")
            # GloVe has words with spaces in them.
            yield " ".join(fields[:-width]), fields[-width:]


def train(model: Any, examples: Iterable[object]) -> None:  # noqa: ANN401 - gensim carries no types
    """Count the words of examples, and train for the epochs of the model.

    Args:
        model: `Word2Vec` or `Doc2Vec`, with one worker; with more, each run gives different vectors.
        examples: the training texts; iterated several times.

    Raises:
        TrainingError: no word is frequent enough.
    """
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


VectorSource: TypeAlias = Word2VecConfig | Path  # to be trained, or a text file of word2vec or GloVe


def word_vectors(source: VectorSource, texts: Texts) -> WordVectors:
    """Train vectors on texts, or read them from a file.

    Args:
        source: a configuration, or the path of a text file for `read_vectors`.
        texts: the training texts, stop words included; from a file, only vectors of their words are kept.

    Raises:
        MissingExtra: gensim is not installed.
        TrainingError: no word is frequent enough.
        DatasetError: the file cannot be read as word vectors, or has none of the words of the texts.
    """
    if isinstance(source, Path):
        return read_vectors(source, frozenset(texts.vocabulary))
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
    return WordVectors(model.wv.key_to_index, model.wv.vectors, np.arange(len(model.wv.vectors)))


def source_settings(source: VectorSource) -> Settings:
    """The settings that determine the vectors.

    Raises:
        DatasetError: the file cannot be read.
    """
    if not isinstance(source, Path):
        return {f"word2vec_{name}": value for name, value in asdict(source).items()} | {"word2vec_workers": 1}
    try:
        with source.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{source} cannot be read ({error}); name a text file of word vectors") from error
    return {"word_vectors": f"{source.name}@{digest[:12]}"}
