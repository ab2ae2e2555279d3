"""A vocabulary of a corpus with a vector for each word, as the first layer of a model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.baselines.texts import Texts, read_texts
from benchmarks.baselines.vector_file import WordVectors
from benchmarks.baselines.word_inputs import PADDING, Vocabulary, count_words, make_vocabulary
from benchmarks.baselines.word_vectors import VectorSource, Word2VecConfig, word_vectors
from engine.document import Document


@dataclass(frozen=True, slots=True)
class WordConfig:
    """The words of a model, and where their vectors come from."""

    width: int = 200  # of vectors trained here; a file has its own
    vectors: Path | None = None  # text file of word2vec or GloVe; None trains word2vec on the corpus
    min_count: int = 5  # a rarer word is unknown
    max_vocabulary: int = 100_000
    epochs: int = 5  # of word2vec, at most
    most_words: int = 10_000_000  # of the corpus, that word2vec reads in an epoch
    tuned: bool = True  # vectors are trained on with the model


@dataclass(frozen=True)
class WordTable:
    """A vocabulary, and the module that holds its vectors."""

    vocabulary: Vocabulary
    embedding: nn.Embedding  # (vocabulary.size, width)


def make_word_table(documents: Iterable[Document], config: WordConfig, *, seed: int, seconds: float) -> WordTable:
    """Number the words of a corpus and give them vectors.

    Padding is zero, the unknown word the mean of all. A word that a file does not know, or that stands in
    no document word2vec has read, has a vector drawn with the spread of the others.

    Args:
        documents: of the corpus. Of a large one word2vec reads some, whole ones taken at random.
        config: see there.
        seed: of word2vec and of all that is drawn.
        seconds: most that counting words and word2vec may take.

    Raises:
        MissingExtra: gensim is not installed.
        TrainingError: no word is frequent enough, or all epochs of word2vec would not be made in time.
        DatasetError: the file holds no word vectors, or none of these words.
    """
    started = time.monotonic()
    corpus = list(documents)
    counts = count_words(corpus)
    vocabulary = make_vocabulary(counts, min_count=config.min_count, max_words=config.max_vocabulary)
    rng = np.random.default_rng(seed)
    if config.vectors is None:
        share = config.most_words / max(1, sum(counts.values()))
        source: VectorSource = Word2VecConfig(
            width=config.width, min_count=config.min_count, epochs=config.epochs, seed=seed
        )
        texts = read_texts(_some(corpus, share, rng))
    else:
        source, texts = config.vectors, Texts((), tuple(vocabulary.ids), ())
    left = seconds - (time.monotonic() - started)
    rows = _rows(word_vectors(source, texts, seconds=left), vocabulary, rng)
    embedding = nn.Embedding(vocabulary.size, rows.shape[1], padding_idx=PADDING, _weight=torch.from_numpy(rows))
    embedding.weight.requires_grad_(config.tuned)
    return WordTable(vocabulary, embedding)


def _some(documents: Sequence[Document], share: float, rng: np.random.Generator) -> Sequence[Document]:
    """A share of documents, in their order; at least one."""
    if share >= 1:
        return documents
    n_taken = max(1, int(share * len(documents)))
    return [documents[at] for at in np.sort(rng.choice(len(documents), n_taken, replace=False))]


def _rows(known: WordVectors, vocabulary: Vocabulary, rng: np.random.Generator) -> NDArray[np.float32]:
    """(vocabulary.size, width), by id."""
    found = {word: known.vectors[known.row[word]] for word in vocabulary.ids if word in known.row}
    held = np.stack(list(found.values()))
    rows = rng.normal(0, held.std(), (vocabulary.size, held.shape[1]))
    for word, vector in found.items():
        rows[vocabulary.ids[word]] = vector
    rows[:2] = np.zeros(held.shape[1]), held.mean(0)  # padding, and the unknown word
    return rows.astype(np.float32)
