from __future__ import annotations

import numpy as np

from benchmarks.gaps.attempts import LESSONS, UNTRAINED, Schedule, by_map, by_words, trained_map
from benchmarks.gaps.learning import Lesson, Target, learn
from benchmarks.gaps.maps import LinearMap, unchanged
from benchmarks.gaps.record import BUNDLED
from tests.benchmarks.gaps.made_corpus import N_DOCUMENTS, WIDTH, made_corpus

LESSON = Lesson(Target.JOINT, learning_rate=0.02, reference=N_DOCUMENTS, pool=N_DOCUMENTS)


def test_words_that_know_everything_rank_better_than_words_that_do_not() -> None:
    assert by_words(made_corpus(words_know=True), "valid") == [1.0] * 48
    assert np.mean(by_words(made_corpus(), "valid")) < 0.3


def test_the_steps_of_a_map_are_chosen_on_valid() -> None:
    corpus = made_corpus()
    schedule = Schedule(steps=12, n_choices=3, choice_queries=48)
    step, chosen = trained_map([corpus], LESSON, schedule)
    values = {
        at: np.mean(by_map(corpus, "valid", found)) for at, found in learn([corpus], LESSON, 12) if at in (4, 8, 12)
    }
    assert step == max(values, key=lambda at: values[at])
    assert np.mean(by_map(corpus, "valid", chosen)) == values[step]


def test_fewer_queries_are_at_equal_distances() -> None:
    corpus = made_corpus()
    every = by_map(corpus, "valid", unchanged)
    assert by_map(corpus, "valid", unchanged, 2) == [every[0], every[-1]]


def test_attempts_have_names_of_their_own() -> None:
    assert UNTRAINED.keys().isdisjoint(LESSONS)
    corpus = made_corpus()
    assert UNTRAINED[BUNDLED]([corpus])(corpus.chunks) is corpus.chunks
    whitened = UNTRAINED["whitened, power 0.5"]([corpus])
    assert isinstance(whitened, LinearMap)
    assert not np.allclose(whitened.matrix, np.eye(WIDTH), atol=0.1)
