"""Documents as words: lower-cased, numbered by a vocabulary, grouped in sentences and paragraphs. No vectors here.

Letters in shapes: W words of a document, S its sentences, P its paragraphs, L words of the longest document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.baselines.texts import words_of
from engine.document import Document
from engine.errors import TrainingError
from engine.segmentation import sentence_starts

PADDING, UNKNOWN = 0, 1  # ids
_N_SPECIAL = 2
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*|\f\s*")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that are told apart; all others are one, `UNKNOWN`."""

    ids: Mapping[str, int]  # from 2 on, the most frequent word first

    @property
    def size(self) -> int:
        """Rows of a table of vectors, padding and the unknown word counted."""
        return len(self.ids) + _N_SPECIAL


@dataclass(frozen=True, slots=True, eq=False)
class DocumentWords:
    """The words of a document in reading order; there is at least one."""

    ids: NDArray[np.int64]  # (W,)
    sentences: NDArray[np.int64]  # (S,) words of each, at least 1; their sum is W
    paragraphs: NDArray[np.int64]  # (P,) sentences of each, at least 1; their sum is S

    def __len__(self) -> int:
        """W."""
        return len(self.ids)


def count_words(documents: Iterable[Document]) -> Counter[str]:
    """How often each word stands in the texts."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(words_of(document.text))
    return counts


def make_vocabulary(counts: Mapping[str, int], *, min_count: int, max_words: int) -> Vocabulary:
    """Keep the most frequent words, equal ones by name.

    Args:
        counts: of all words.
        min_count: a rarer word is unknown.
        max_words: of the vocabulary, at most.

    Raises:
        TrainingError: no word is left.
    """
    kept = sorted(
        (word for word, count in counts.items() if count >= min_count), key=lambda word: (-counts[word], word)
    )[:max_words]
    if not kept:
        raise TrainingError(
            f"no word of the corpus stands in it {min_count} times ({len(counts)} are rarer); lower min_count"
        )
    return Vocabulary({word: number for number, word in enumerate(kept, start=_N_SPECIAL)})


def read_words(document: Document, vocabulary: Vocabulary, max_words: int) -> DocumentWords:
    """Read the first `max_words` words of a document.

    Sentences are those of `engine.segmentation`, paragraphs end at blank lines and where a section
    ends. A document without a word is read as one unknown word.
    """
    paragraph_starts = _paragraph_starts(document)
    starts = sorted({*sentence_starts(document.text), *paragraph_starts})
    ids: list[int] = []
    sentences: list[int] = []
    paragraph_of_sentence: list[int] = []
    for start, stop in zip(starts, [*starts[1:], len(document.text)], strict=True):
        words = words_of(document.text[start:stop])[: max_words - len(ids)]
        if words:
            ids += (vocabulary.ids.get(word, UNKNOWN) for word in words)
            sentences.append(len(words))
            paragraph_of_sentence.append(bisect_right(paragraph_starts, start))
        if len(ids) == max_words:
            break
    paragraphs = np.unique(paragraph_of_sentence or [0], return_counts=True)[1]
    return DocumentWords(np.array(ids or [UNKNOWN]), np.array(sentences or [1]), paragraphs.astype(np.int64))


def pad_words(documents: Sequence[DocumentWords], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids (N, L) int64 padded to the longest document, and (N, L) bool, True where a word is real."""
    ids = torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(document.ids) for document in documents], batch_first=True, padding_value=PADDING
    ).to(device)
    return ids, ids != PADDING


def _paragraph_starts(document: Document) -> list[int]:
    ends = {match.end() for match in _PARAGRAPH_END.finditer(document.text)}
    return sorted({0, *ends, *(section.start for section in document.sections)})
