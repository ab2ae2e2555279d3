"""A vector a word: trained on the corpus itself by gensim's word2vec, or read from a text file. No documents' vectors.

Letters in shapes: V words, D width.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.baselines.extra_packages import optional
from benchmarks.baselines.gensim_training import train
from benchmarks.baselines.texts import Stretches, Texts
from benchmarks.baselines.vector_file import WordVectors, read_vectors
from benchmarks.datasets import DatasetError
from benchmarks.systems import Settings


@dataclass(frozen=True)
class Word2VecConfig:
    """Skip-gram with negative sampling (Mikolov et al. 2013, arXiv:1310.4546), trained by one worker.

    Width and skip-gram are those of ETM's word vectors; ten epochs of a small corpus, fewer
    of a large one, see `epochs_over`; all else is gensim's default.
    """

    width: int = 300
    window: int = 5
    min_count: int = 5  # rarer words have no vector
    negative: int = 5
    sample: float = 1e-3
    epochs: int = 10  # at most
    enough_words: int = 40_000_000  # read in all epochs together; once they are, no other epoch is begun
    seed: int = 0

    def epochs_over(self, n_words: int) -> int:
        """Epochs that a corpus of so many words gets: at least one."""
        return max(1, min(self.epochs, math.ceil(self.enough_words / max(1, n_words))))


VectorSource: TypeAlias = Word2VecConfig | Path  # to be trained, or a text file of word2vec or GloVe


def word_vectors(source: VectorSource, texts: Texts, *, seconds: float = math.inf) -> WordVectors:
    """Train vectors on texts, or read them from a file, whatever the texts are.

    Args:
        source: a configuration, or the path of a text file: a word and its numbers a
            line, with or without word2vec's first line of two numbers; may be gzipped.
        texts: all words are learned from, stop words too; of a file only their words are kept.
        seconds: most that training may take.

    Raises:
        MissingExtra: gensim is not installed.
        TrainingError: no word is frequent enough, or all epochs would not be made in time.
        DatasetError: the file cannot be read as word vectors, or holds none of a word of the texts.
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
    train(model, Stretches(texts), seconds)
    return WordVectors(model.wv.key_to_index, model.wv.vectors, np.arange(len(model.wv.vectors)))


def source_settings(source: VectorSource) -> Settings:
    """What is needed to get the same vectors again.

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
