"""Texts as numbers of words: what a word is, and which words carry content. No vectors here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.extra_packages import optional
from engine.document import Document

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Texts:
    """The words of a corpus, in reading order, a number a word."""

    doc_ids: tuple[str, ...]
    vocabulary: tuple[str, ...]  # by number, in the order of first use
    numbers: tuple[NDArray[np.uint32], ...]  # of each document


class Stretches:
    """Runs of words, of one document each; may be gone through again and again.

    gensim drops what stands behind the 10,000th word of a text without a word about it.
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
    """Number the words of a stream of documents, titles and headings included as their texts have them."""
    number_of: dict[str, int] = {}
    doc_ids: list[str] = []
    numbers: list[NDArray[np.uint32]] = []
    for document in documents:
        doc_ids.append(document.doc_id)
        own = (number_of.setdefault(word, len(number_of)) for word in words_of(document.text))
        numbers.append(np.fromiter(own, np.uint32))
    return Texts(tuple(doc_ids), tuple(number_of), tuple(numbers))


def are_content(words: Sequence[str]) -> NDArray[np.bool_]:
    """Which words are longer than a character, hold no digit, and are no English stop words.

    As the released code of Gong et al. (2018) has it, with the stop words of gensim
    in place of its list of function words; Kusner et al. (2015) drop stop words too.

    Raises:
        MissingExtra: gensim is not installed.
    """
    stop_words = optional("gensim.parsing.preprocessing", "a list of stop words", "gensim").STOPWORDS
    return np.array([len(word) > 1 and word not in stop_words and not _DIGIT.search(word) for word in words], np.bool_)
