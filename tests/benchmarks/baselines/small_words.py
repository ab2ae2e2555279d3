"""Documents of made words with random vectors, small enough for a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from benchmarks.baselines.word_vectors import Texts, read_texts
from engine.text.document import Document
from tests.fakes import make_document

WORDS = ["".join(letters) for letters in product("bdfgk", "aeiou", "lmnr", "qz")]  # 200, no stop words, no digits


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
