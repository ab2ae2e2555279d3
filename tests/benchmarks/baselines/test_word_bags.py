from __future__ import annotations

import numpy as np
import pytest

from benchmarks.baselines.vector_file import WordVectors
from benchmarks.baselines.word_bags import WordCounter
from tests.benchmarks.baselines.small_words import WORDS, known_words, texts_of

pytest.importorskip("gensim")


def test_bags_count_the_known_words_of_each_document() -> None:
    texts, known = texts_of([f"{WORDS[3]} {WORDS[1]} {WORDS[3]} the b2b {WORDS[50]}", "the"]), known_words(20, 4)
    bags = WordCounter(known).bags(texts)
    found = [dict(zip(bag.rows.tolist(), bag.counts.tolist(), strict=True)) for bag in bags]
    assert found == [{1: 1, 3: 2}, {}]


def test_only_the_first_words_of_the_source_are_known() -> None:
    texts = texts_of([" ".join(WORDS[:6])])
    known = known_words(6, 4)
    later = WordVectors(known.row, known.vectors, known.ranks + 10)
    assert WordCounter(known, n_known=4).bags(texts)[0].rows.tolist() == [0, 1, 2, 3]
    assert WordCounter(later, n_known=13).bags(texts)[0].rows.tolist() == [0, 1, 2]


def test_a_vector_of_no_length_is_no_vector() -> None:
    known = known_words(3, 4)
    vectors = np.where(np.array([[1], [0], [1]]), known.vectors, 0).astype(np.float32)
    counter = WordCounter(WordVectors(known.row, vectors, known.ranks))
    bags = counter.bags(texts_of([" ".join(WORDS[:3])]))
    assert bags[0].rows.tolist() == [0, 2]
