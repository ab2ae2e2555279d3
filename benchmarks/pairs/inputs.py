"""The inputs of neural baselines from a document: words of a table, or letter trigrams."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.baselines.text_baselines import Word2VecConfig, WordVectors, read_texts, word_vectors, words_of
from engine.errors import TrainingError
from engine.text.document import Document
from engine.text.segmentation import sentence_starts

PADDING, UNKNOWN = 0, 1  # ids
_N_SPECIAL = 2
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*|\f\s*")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The known words; all other words have one id, `UNKNOWN`."""

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
    """Count the occurrences of each word in the texts."""
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(words_of(document.text))
    return counts


def make_vocabulary(counts: Mapping[str, int], *, min_count: int, max_words: int) -> Vocabulary:
    """Keep the most frequent words; equally frequent ones are ordered by name."""
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

    Sentences are from `engine.text.segmentation`. Paragraphs end at blank lines, form feeds and ends of
    sections. A document without a word is read as one unknown word.
    """
    sentences = words_by_sentence(document, max_words)
    ids = [vocabulary.ids.get(word, UNKNOWN) for _, words in sentences for word in words]
    paragraphs = np.unique([paragraph for paragraph, _ in sentences] or [0], return_counts=True)[1]
    lengths = [len(words) for _, words in sentences]
    return DocumentWords(np.array(ids or [UNKNOWN]), np.array(lengths or [1]), paragraphs.astype(np.int64))


def words_by_sentence(document: Document, max_words: int) -> list[tuple[int, list[str]]]:
    """The first `max_words` words by sentence, each sentence with the number of its paragraph; see `read_words`.

    A sentence without a word is left out; the result is empty for a document without a word.
    """
    paragraph_starts = _paragraph_starts(document)
    starts = sorted({*sentence_starts(document.text), *paragraph_starts})
    sentences: list[tuple[int, list[str]]] = []
    left = max_words
    for start, stop in zip(starts, [*starts[1:], len(document.text)], strict=True):
        words = words_of(document.text[start:stop])[:left]
        if words:
            sentences.append((bisect_right(paragraph_starts, start), words))
        left -= len(words)
        if not left:
            break
    return sentences


def pad_words(documents: Sequence[DocumentWords], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids (N, L) int64 padded to the longest document, and (N, L) bool, True where a word is real."""
    ids = torch.nn.utils.rnn.pad_sequence(
        [torch.from_numpy(document.ids) for document in documents], batch_first=True, padding_value=PADDING
    ).to(device)
    return ids, ids != PADDING


def _paragraph_starts(document: Document) -> list[int]:
    ends = {match.end() for match in _PARAGRAPH_END.finditer(document.text)}
    return sorted({0, *ends, *(section.start for section in document.sections)})


@dataclass(frozen=True, slots=True)
class WordConfig:
    """The vocabulary of a model, and how word2vec gives its words vectors."""

    width: int = 200
    min_count: int = 5  # a rarer word is unknown
    max_vocabulary: int = 100_000
    epochs: int = 5  # most epochs of word2vec
    most_words: int = 10_000_000  # most words of the corpus that word2vec reads in an epoch
    tuned: bool = True  # vectors are tuned with the model


@dataclass(frozen=True)
class WordTable:
    """A vocabulary, and the module with its vectors."""

    vocabulary: Vocabulary
    embedding: nn.Embedding  # (vocabulary.size, width)


def make_word_table(documents: Iterable[Document], config: WordConfig, *, seed: int) -> WordTable:
    """Number the words of a corpus and give them vectors.

    The vector of padding is zero, that of the unknown word the mean of all. A word in no document that
    word2vec has read gets a random vector with the standard deviation of the others.
    """
    corpus = list(documents)
    counts = count_words(corpus)
    vocabulary = make_vocabulary(counts, min_count=config.min_count, max_words=config.max_vocabulary)
    rng = np.random.default_rng(seed)
    share = config.most_words / max(1, sum(counts.values()))
    source = Word2VecConfig(width=config.width, min_count=config.min_count, epochs=config.epochs, seed=seed)
    rows = _rows(word_vectors(source, read_texts(_some(corpus, share, rng))), vocabulary, rng)
    embedding = nn.Embedding(vocabulary.size, rows.shape[1], padding_idx=PADDING, _weight=torch.from_numpy(rows))
    embedding.weight.requires_grad_(config.tuned)
    return WordTable(vocabulary, embedding)


def _some(documents: Sequence[Document], share: float, rng: np.random.Generator) -> Sequence[Document]:
    """A random share of the documents, in their order; at least one."""
    if share >= 1:
        return documents
    n_taken = max(1, int(share * len(documents)))
    return [documents[at] for at in np.sort(rng.choice(len(documents), n_taken, replace=False))]


def _rows(known: WordVectors, vocabulary: Vocabulary, rng: np.random.Generator) -> NDArray[np.float32]:
    """(vocabulary.size, width) vectors by id."""
    found = {word: known.vectors[known.row[word]] for word in vocabulary.ids if word in known.row}
    held = np.stack(list(found.values()))
    rows = rng.normal(0, held.std(), (vocabulary.size, held.shape[1]))
    for word, vector in found.items():
        rows[vocabulary.ids[word]] = vector
    rows[:2] = np.zeros(held.shape[1]), held.mean(0)  # padding, and the unknown word
    return rows.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class TrigramCounts:
    """The known trigrams of a document, each once."""

    ids: NDArray[np.int64]  # (T,), rising
    weights: NDArray[np.float32]  # (T,) log(1 + n) of a trigram with n occurrences

    def __len__(self) -> int:
        """T."""
        return len(self.ids)


def letter_trigrams(word: str) -> list[str]:
    """The letter trigrams of a word, one for each of its letters."""
    marked = f"#{word}#"
    return [marked[start : start + 3] for start in range(len(word))]


def frequent_trigrams(words: Mapping[str, int], *, min_count: int, most: int) -> dict[str, int]:
    """Number the most frequent trigrams from 0; equally frequent ones are ordered by name."""
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
    """Count the known trigrams of a whole document of any length.

    Weights are logarithms of counts. The paper uses the counts themselves, of a query or a title; the counts of a
    long document, in the thousands for some trigrams, would drive every unit of the first layer to -1 or 1.
    """
    counts: Counter[int] = Counter()
    for word, n_times in Counter(words_of(document.text)).items():
        for trigram in letter_trigrams(word):
            if trigram in ids:
                counts[ids[trigram]] += n_times
    known = sorted(counts)
    weights = np.log1p(np.array([counts[number] for number in known], np.float32))
    return TrigramCounts(np.array(known, np.int64), weights.astype(np.float32))
