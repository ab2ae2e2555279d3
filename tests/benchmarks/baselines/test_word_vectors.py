from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.baselines.word_vectors import (
    Stretches,
    Texts,
    Word2VecConfig,
    read_texts,
    word_vectors,
    words_of,
)
from engine.errors import TrainingError
from tests.benchmarks.baselines.small_words import WORDS, texts_of
from tests.fakes import make_document


def test_words_are_lower_cased_runs_of_word_characters() -> None:
    assert words_of("Don't PANIC: x86_64, Öl!") == ["don", "t", "panic", "x86_64", "öl"]


def test_words_are_numbered_in_the_order_of_first_use() -> None:
    texts = read_texts([make_document("a", "Cat dog cat."), make_document("b", ""), make_document("c", "dog owl")])
    assert texts.doc_ids == ("a", "b", "c")
    assert texts.vocabulary == ("cat", "dog", "owl")
    assert [numbers.tolist() for numbers in texts.numbers] == [[0, 1, 0], [], [1, 2]]


def test_a_long_text_is_given_in_stretches_and_none_of_it_is_lost() -> None:
    stretches = Stretches(texts_of(["a b c d e", "", "f g"]), longest=2)
    expected = [(0, ["a", "b"]), (0, ["c", "d"]), (0, ["e"]), (2, ["f", "g"])]
    assert list(stretches.by_row()) == expected
    assert list(stretches) == list(stretches) == [words for _, words in expected]


pytest.importorskip("gensim")

TINY = Word2VecConfig(width=16, min_count=1, epochs=20, sample=0.1)


@pytest.fixture(scope="module")
def two_topics() -> Texts:
    """Two kinds of texts that share no word; those of a kind are shuffles of the same ten."""
    rng = np.random.default_rng(0)
    return texts_of([" ".join(rng.permutation(WORDS[10 * (n % 2) :][:10])) for n in range(60)])


def test_words_that_stand_together_get_near_vectors(two_topics: Texts) -> None:
    known = word_vectors(TINY, two_topics)
    unit = known.vectors / np.linalg.norm(known.vectors, axis=1, keepdims=True)
    first, second = ([known.row[word] for word in words] for words in (WORDS[:10], WORDS[10:20]))
    assert (unit[first] @ unit[first].T).min() > (unit[first] @ unit[second].T).max()


def test_the_same_seed_gives_the_same_vectors_and_another_gives_others(two_topics: Texts) -> None:
    once, again, other = (word_vectors(config, two_topics).vectors for config in (TINY, TINY, replace(TINY, seed=1)))
    np.testing.assert_array_equal(once, again)
    assert not np.allclose(once, other)


def test_texts_without_a_frequent_word_are_refused() -> None:
    with pytest.raises(TrainingError, match="no word stands 5 times in these texts; lower min_count"):
        word_vectors(replace(TINY, min_count=5), texts_of(["cat dog"]))


@pytest.mark.parametrize(
    ("n_words", "n_epochs"), [(0, 10), (99, 10), (100, 10), (300, 4), (999, 2), (1000, 1), (5000, 1)]
)
def test_a_large_corpus_gets_as_many_epochs_as_make_enough_words(n_words: int, n_epochs: int) -> None:
    assert Word2VecConfig(epochs=10, enough_words=1000).epochs_over(n_words) == n_epochs


def test_no_epoch_is_begun_once_enough_words_were_read(two_topics: Texts) -> None:
    n_words = sum(map(len, two_topics.numbers))
    cut_short = word_vectors(replace(TINY, enough_words=2 * n_words), two_topics)
    np.testing.assert_array_equal(cut_short.vectors, word_vectors(replace(TINY, epochs=2), two_topics).vectors)
