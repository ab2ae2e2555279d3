"""Pairs of small documents, over eight topics or sharing words where they match, and helpers for tests of scorers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from benchmarks.pairs.inputs import DocumentWords, WordConfig
from benchmarks.pairs.neural import TRANSFORMER_TRAINING
from benchmarks.pairs.pair_model import PairTraining
from benchmarks.pairs.scoring import Budget, Fit, Pair, PairScorer
from engine.text.document import Document
from tests.fakes import make_document
from tests.training.made import pairs_of_texts

N_TOPICS = 8


# Each character is one token of the BERT of the tests.
_CHARACTERS = "bcdefghijklmnopqrstuvwxyz0123456"


_COMMON = "one two three four five six seven eight nine ten".split()


TINY_WORDS = WordConfig(width=16, min_count=1, epochs=1)


OVERFITTING = PairTraining(learning_rate=1e-2)


OVERFITTING_TRANSFORMER = replace(
    TRANSFORMER_TRAINING, learning_rate=1e-2, warmup_share=0.0, decays=False, pairs_at_once=32, mixed_precision=False
)


def topical_documents(n_per_topic: int = 4, *, seed: int = 0) -> dict[str, Document]:
    """Documents of two sections of two sentences each; words are single characters of the topic, or common words."""
    rng = np.random.default_rng(seed)
    documents = {}
    for topic in range(N_TOPICS):
        for number in range(n_per_topic):
            sections = [("Section", _sentence(rng, topic) + _sentence(rng, topic).strip()) for _ in range(2)]
            doc_id = f"t{topic}d{number}"
            documents[doc_id] = make_document(doc_id, sections)
    return documents


def _sentence(rng: np.random.Generator, topic: int) -> str:
    of_topic = [_CHARACTERS[4 * topic + number] for number in rng.integers(0, 4, 3)]
    return " ".join([*of_topic, *(_COMMON[number] for number in rng.integers(0, len(_COMMON), 3))]) + ". "


def topical_pairs() -> list[Pair]:
    """Thirty-two pairs: for each topic two matching pairs, and two pairs with the next topic."""
    pairs = []
    for topic in range(N_TOPICS):
        other = (topic + 1) % N_TOPICS
        pairs += [Pair(f"t{topic}d{number}", f"t{topic}d{number + 1}", True) for number in (0, 2)]
        pairs += [Pair(f"t{topic}d{number}", f"t{other}d{number + 1}", False) for number in (0, 2)]
    return pairs


def share_right(scorer: PairScorer, pairs: Sequence[Pair]) -> float:
    """Share of pairs that are classified correctly at a probability of one half."""
    labels = np.array([pair.is_match for pair in pairs])
    return float(np.mean((scorer.score(pairs) > 0) == labels))


def fitted(scorer: PairScorer, *, steps: int = 60, seed: int = 0) -> PairScorer:
    """Train a scorer, with all pairs in each step, and return it."""
    scorer.fit(Fit(topical_documents(), topical_pairs(), [], Budget(steps, 32), seed))
    return scorer


def turned(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with their documents exchanged."""
    return [Pair(pair.second, pair.first, pair.is_match) for pair in pairs]


def random_words(seed: int, *, n_words: int, vocabulary: int = 50) -> DocumentWords:
    """A document of sentences of up to seven words and paragraphs of up to three sentences."""
    rng = np.random.default_rng(seed)
    sentences = _cut(n_words, 7, rng)
    return DocumentWords(rng.integers(2, vocabulary, n_words), sentences, _cut(len(sentences), 3, rng))


def _cut(total: int, most: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    pieces: list[int] = []
    while sum(pieces) < total:
        pieces.append(int(min(rng.integers(1, most + 1), total - sum(pieces))))
    return np.array(pieces)


def random_table(*, width: int, vocabulary: int = 50) -> torch.nn.Embedding:
    """Word vectors, zero for padding."""
    return torch.nn.Embedding(vocabulary, width, padding_idx=0)


BUDGET = Budget(steps=4, pairs_per_step=8)


def texts(n: int = 24) -> dict[str, Document]:
    """q0, t0, q1, t1, ...; q and t of a number have half of their words in common."""
    return {document.doc_id: document for document in pairs_of_texts(n)}


def labelled(first: int, stop: int) -> list[Pair]:
    """For each number a match, and a mismatch with the next number."""
    numbers = list(range(first, stop))
    pairs = []
    for number, following in zip(numbers, [*numbers[1:], first], strict=True):
        pairs += [Pair(f"q{number}", f"t{number}", True), Pair(f"q{number}", f"t{following}", False)]
    return pairs


TRAIN, VALID, TEST = labelled(0, 12), labelled(12, 18), labelled(18, 24)
