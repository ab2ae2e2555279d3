from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.texts import Texts
from benchmarks.baselines.word_vectors import Word2VecConfig, source_settings, word_vectors
from benchmarks.datasets import DatasetError
from engine.errors import TrainingError
from tests.benchmarks.baselines.small_words import WORDS, known_words, texts_of, write_vectors

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


def test_rare_words_have_no_vector_and_frequent_ones_come_first() -> None:
    known = word_vectors(replace(TINY, min_count=2), texts_of(["bag cat bag cat bag", "dog"]))
    assert dict(known.row) == {"bag": 0, "cat": 1}


def test_texts_without_a_frequent_word_are_refused() -> None:
    with pytest.raises(TrainingError, match="no word stands 5 times in these texts; lower min_count"):
        word_vectors(replace(TINY, min_count=5), texts_of(["cat dog"]))


def test_training_ends_when_its_time_is_up(two_topics: Texts) -> None:
    with pytest.raises(TrainingError, match="1 of 20 epochs took 0 s, 0 s were given for all; ask for fewer epochs"):
        word_vectors(TINY, two_topics, seconds=0)


@pytest.mark.parametrize(
    ("n_words", "n_epochs"), [(0, 10), (99, 10), (100, 10), (300, 4), (999, 2), (1000, 1), (5000, 1)]
)
def test_a_large_corpus_gets_as_many_epochs_as_make_enough_words(n_words: int, n_epochs: int) -> None:
    assert Word2VecConfig(epochs=10, enough_words=1000).epochs_over(n_words) == n_epochs


def test_no_epoch_is_begun_once_enough_words_were_read(two_topics: Texts) -> None:
    n_words = sum(map(len, two_topics.numbers))
    cut_short = word_vectors(replace(TINY, enough_words=2 * n_words), two_topics)
    np.testing.assert_array_equal(cut_short.vectors, word_vectors(replace(TINY, epochs=2), two_topics).vectors)


def test_a_file_is_read_in_place_of_training(tmp_path: Path) -> None:
    written = known_words(7, 5)
    read = word_vectors(write_vectors(tmp_path / "vectors.txt", written, header=True), texts_of([WORDS[6], WORDS[2]]))
    assert dict(read.row) == {WORDS[2]: 0, WORDS[6]: 1}
    np.testing.assert_allclose(read.vectors, written.vectors[[2, 6]], rtol=1e-6)


def test_settings_say_how_to_get_the_same_vectors(tmp_path: Path) -> None:
    settings = source_settings(replace(TINY, seed=3))
    assert settings.items() >= {"word2vec_width": 16, "word2vec_seed": 3, "word2vec_workers": 1}.items()
    file = write_vectors(tmp_path / "vectors.txt", known_words(3, 4), header=True)
    assert str(source_settings(file)["word_vectors"]).startswith("vectors.txt@")
    with pytest.raises(DatasetError, match=r"absent\.txt cannot be read .*; name a text file of word vectors"):
        source_settings(tmp_path / "absent.txt")
