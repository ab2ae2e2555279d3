from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.gaps.attempts import by_map
from benchmarks.gaps.corpus import joint_scores, mapped_corpus
from benchmarks.gaps.learning import Example, Lesson, ReferenceSample, Target, chunks_add, learn
from benchmarks.gaps.maps import LinearMap, unchanged
from tests.benchmarks.gaps.made_corpus import N_DOCUMENTS, N_SIGNAL, WIDTH, made_corpus

QUICK = {"learning_rate": 0.02, "reference": N_DOCUMENTS, "pool": N_DOCUMENTS}


def _last(lesson: Lesson, n_steps: int, **made: bool) -> LinearMap:
    return [found for _, found in learn([made_corpus(**made)], lesson, n_steps)][-1]


@pytest.mark.parametrize("is_diagonal", [True, False])
def test_a_map_learns_which_dimensions_are_noise(is_diagonal: bool) -> None:
    other = made_corpus(seed=0, noise=1.6)
    before = np.mean(by_map(other, "valid", unchanged))
    learned = _last(Lesson(Target.JOINT, is_diagonal=is_diagonal, **QUICK), 40)
    assert np.mean(by_map(other, "valid", learned)) > before + 0.1
    scale = np.linalg.norm(learned.matrix, axis=1)
    assert scale[:N_SIGNAL].mean() > scale[N_SIGNAL:].mean() + 0.2


def test_where_words_do_not_fail_nothing_is_learned() -> None:
    gaps = _last(Lesson(Target.GAPS, **QUICK, decay=0.0), 3, words_know=True)
    joint = _last(Lesson(Target.JOINT, **QUICK, decay=0.0), 3)
    np.testing.assert_allclose(gaps.matrix, np.eye(WIDTH), atol=1e-3)
    assert np.abs(joint.matrix - np.eye(WIDTH)).max() > 0.03


def test_a_teacher_that_is_the_pupil_teaches_the_rest_alone() -> None:
    """The teacher's score holds words, the pupil's does not: chunks learn what words know."""
    other = made_corpus(seed=0, noise=1.6)
    before = np.mean(by_map(other, "valid", unchanged))
    taught = _last(Lesson(Target.TEACHER, **QUICK), 40, words_know=True)
    assert np.mean(by_map(other, "valid", taught)) > before + 0.1


def test_the_same_seed_gives_the_same_map() -> None:
    lesson = Lesson(Target.JOINT, **QUICK)
    one, again = _last(lesson, 3), _last(lesson, 3)
    assert np.array_equal(one.matrix, again.matrix)
    (*_, (_, other)) = learn([made_corpus()], lesson, 3, seed=1)
    assert not np.array_equal(one.matrix, other.matrix)


def test_without_softening_chunks_add_what_they_add_in_search() -> None:
    corpus = made_corpus()
    case = corpus.cases["valid"][2]
    draw = np.random.default_rng(5)
    matrix = (np.eye(WIDTH) + 0.2 * draw.standard_normal((WIDTH, WIDTH))).astype(np.float32)
    vector_map = LinearMap(matrix, np.zeros(WIDTH, np.float32))
    scores = joint_scores(corpus, case, mapped_corpus(corpus, vector_map))
    documents = [at for at in range(N_DOCUMENTS) if at != case.position]
    sample = ReferenceSample(corpus, N_DOCUMENTS, draw)
    sample.follow(torch.from_numpy(matrix))
    added = chunks_add(corpus, Example(case, documents), torch.from_numpy(matrix), sample, 0.0, [0, 1, 2])
    # A root of a small number: the least that is added to a component shows.
    np.testing.assert_allclose(added.numpy(), (scores - case.rest)[documents], atol=0.37 * 0.011)
    assert added.max() > 0.1
