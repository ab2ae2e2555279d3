"""Word hashing: a document as counts of the letter trigrams of its words. No weights here.

Huang et al. (2013, CIKM, "Learning Deep Structured Semantic Models for Web Search using Clickthrough
Data"), section 3.2: a word is put between two marks and cut into its runs of three letters, `good`
into `#go goo ood od#`; some 30,000 trigrams stand for any number of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.texts import words_of
from engine.document import Document
from engine.errors import TrainingError


@dataclass(frozen=True, slots=True, eq=False)
class TrigramCounts:
    """The trigrams of a document that are known, each once."""

    ids: NDArray[np.int64]  # (T,), rising
    weights: NDArray[np.float32]  # (T,) log(1 + n) of a trigram that stands n times

    def __len__(self) -> int:
        """T."""
        return len(self.ids)


def letter_trigrams(word: str) -> list[str]:
    """The letter trigrams of a word, one for each of its letters."""
    marked = f"#{word}#"
    return [marked[start : start + 3] for start in range(len(word))]


def frequent_trigrams(words: Mapping[str, int], *, min_count: int, most: int) -> dict[str, int]:
    """Number the most frequent trigrams from 0, equally frequent ones by name.

    Args:
        words: how often each word stands in the corpus.
        min_count: a rarer trigram is not read.
        most: trigrams, at most.

    Raises:
        TrainingError: no trigram is left.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for trigram in letter_trigrams(word):
            counts[trigram] += count
    ranked = sorted(counts, key=lambda trigram: (-counts[trigram], trigram))
    kept = [trigram for trigram in ranked[:most] if counts[trigram] >= min_count]
    if not kept:
        raise TrainingError(
            f"no letter trigram stands {min_count} times in the corpus ({len(counts)} are rarer); lower min_count"
        )
    return {trigram: number for number, trigram in enumerate(kept)}


def count_trigrams(document: Document, ids: Mapping[str, int]) -> TrigramCounts:
    """Read a whole document, whatever its length.

    Weights are logarithms, where the paper counts the trigrams of a query or a title: the thousands
    that a long document has of some would leave every unit of the first layer at -1 or 1.
    """
    counts: Counter[int] = Counter()
    for word, n_times in Counter(words_of(document.text)).items():
        for trigram in letter_trigrams(word):
            if trigram in ids:
                counts[ids[trigram]] += n_times
    known = sorted(counts)
    weights = np.log1p(np.array([counts[number] for number in known], np.float32))
    return TrigramCounts(np.array(known, np.int64), weights.astype(np.float32))
