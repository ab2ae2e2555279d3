"""Documents of made words with random vectors, small enough for a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.baselines.word_vectors import Texts, WordVectors, read_texts
from engine.text.document import Document
from tests.fakes import make_document

WORDS = ["".join(letters) for letters in product("bdfgk", "aeiou", "lmnr", "qz")]  # 200, no stop words, no digits


def known_words(n_words: int, width: int, seed: int = 0) -> WordVectors:
    """Vectors of lengths between 0.5 and 3 for the first of `WORDS`."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n_words, width))
    vectors *= rng.uniform(0.5, 3, (n_words, 1)) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return WordVectors(
        {word: row for row, word in enumerate(WORDS[:n_words])}, vectors.astype(np.float32), np.arange(n_words)
    )


def random_documents(n_documents: int, n_words: int, longest: int, seed: int = 1) -> list[Document]:
    """Each draws its words from a window of the first `n_words`, so that some are near each other."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(n_documents):
        window = rng.integers(n_words) + rng.integers(0, n_words // 3, rng.integers(1, longest + 1))
        documents.append(make_document(f"doc{number}", " ".join(WORDS[at % n_words] for at in window)))
    return documents


def texts_of(texts: Sequence[str]) -> Texts:
    """The texts of documents named d0, d1, and so on."""
    return read_texts(make_document(f"d{number}", text) for number, text in enumerate(texts))


def vector_of(vectors: WordVectors, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The vector of a word in double precision."""
    return vectors.vectors[vectors.row[word]].astype(np.float64)


def write_vectors(file: Path, vectors: WordVectors, *, header: bool) -> Path:
    """Write vectors in the format of word2vec (with a header) or of GloVe (without)."""
    lines = [" ".join([word, *(repr(float(x)) for x in vectors.vectors[row])]) for word, row in vectors.row.items()]
    first = [f"{len(lines)} {vectors.vectors.shape[1]}"] if header else []
    file.write_text("\n".join([*first, *lines]) + "\n", "utf-8")
    return file
