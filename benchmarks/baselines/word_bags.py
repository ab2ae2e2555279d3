"""Documents as bags of words that have a vector: which words, how often. No vectors' arithmetic here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.texts import Texts, are_content
from benchmarks.baselines.vector_file import WordVectors


@dataclass(frozen=True)
class WordBag:
    """The distinct words of a document."""

    rows: NDArray[np.int64]  # (n,) of the word vectors, rising
    counts: NDArray[np.int64]  # (n,) how often each stands in the document


class WordCounter:
    """Counts the words of documents; stop words, digits and words without a vector are left out."""

    def __init__(self, vectors: WordVectors, *, n_known: int | None = None) -> None:
        """Look through the words that have a vector.

        Args:
            vectors: of words; those of no length are left out too.
            n_known: only so many words have a vector, the most frequent ones; by default all.

        Raises:
            MissingExtra: gensim is not installed.
        """
        words = list(vectors.row)
        rows = np.array([vectors.row[word] for word in words], np.int64)
        limit = np.inf if n_known is None else n_known
        has_length: NDArray[np.bool_] = np.any(vectors.vectors, axis=1)
        is_known = are_content(words) & (vectors.ranks[rows] < limit) & has_length[rows]
        self._row = {words[at]: int(rows[at]) for at in np.flatnonzero(is_known)}

    def bags(self, texts: Texts) -> list[WordBag]:
        """A bag for each document, perhaps an empty one."""
        row_of = np.array([self._row.get(word, -1) for word in texts.vocabulary], np.int64)
        bags = []
        for numbers in texts.numbers:
            found = row_of[numbers]
            rows, counts = np.unique(found[found >= 0], return_counts=True)
            bags.append(WordBag(rows, counts.astype(np.int64)))
        return bags
