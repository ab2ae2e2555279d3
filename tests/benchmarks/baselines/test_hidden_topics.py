from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.baselines.hidden_topics import HiddenTopics, HiddenTopicsConfig, hidden_topics
from benchmarks.baselines.word_vectors import read_texts
from tests.benchmarks.baselines.small_words import WORDS, known_words, random_documents, vector_of
from tests.fakes import make_document

pytest.importorskip("gensim")

VECTORS = known_words(60, 16)
DOCUMENTS = random_documents(12, 60, 40)
BASELINE = HiddenTopics().fit_words(read_texts(DOCUMENTS), VECTORS)


def score_by_hand(short: str, long: str, n_topics: int = 10) -> float:
    """As the released code: a matrix with a row for each occurrence, its SVD, and cosines one by one."""
    words = np.stack([vector_of(VECTORS, word) for word in long.split()])
    _, singular, directions = np.linalg.svd(words)
    n_topics = min(n_topics, len(words))
    weights = singular[:n_topics] ** 2 / (singular[:n_topics] ** 2).sum()
    total = 0.0
    for weight, topic in zip(weights, directions, strict=False):
        squares = [
            (vector_of(VECTORS, word) @ topic) ** 2 / (vector_of(VECTORS, word) ** 2).sum() for word in short.split()
        ]
        total += weight * float(np.mean(squares))
    return math.sqrt(total)


def test_topics_are_the_first_right_singular_vectors() -> None:
    words, counts = VECTORS.vectors[:25].astype(np.float64), np.random.default_rng(0).integers(1, 6, 25)
    topics, weights = hidden_topics(words, counts, 4)
    _, singular, directions = np.linalg.svd(np.repeat(words, counts, axis=0))
    np.testing.assert_allclose(np.abs((topics * directions[:4]).sum(axis=1)), 1, atol=1e-9)
    np.testing.assert_allclose(weights, singular[:4] ** 2 / (singular[:4] ** 2).sum(), atol=1e-9)


def test_fewer_words_than_topics_leave_topics_without_weight() -> None:
    topics, weights = hidden_topics(VECTORS.vectors[:2].astype(np.float64), np.array([1, 1]), 5)
    assert topics.shape == (5, 16)
    np.testing.assert_allclose([weights[:2].sum(), *weights[2:]], [1, 0, 0, 0], atol=1e-9)
    assert hidden_topics(np.empty((0, 16)), np.empty(0, np.int64), 5)[1].tolist() == [0] * 5


def test_search_takes_the_query_for_the_short_document() -> None:
    for query in DOCUMENTS[:4]:
        expected = {other.doc_id: score_by_hand(query.text, other.text) for other in DOCUMENTS if other is not query}
        ranking = BASELINE.search(query, k=20)
        assert dict(ranking) == pytest.approx(expected, abs=1e-5)
        assert [doc_id for doc_id, _ in ranking] == sorted(expected, key=lambda doc_id: -expected[doc_id])


def test_a_pair_takes_the_longer_for_the_long_one_in_either_order() -> None:
    for first, second in [(0, 1), (2, 3), (4, 5), (6, 7)]:
        texts = sorted((DOCUMENTS[first].text, DOCUMENTS[second].text), key=lambda text: len(text.split()))
        assert BASELINE.score(f"doc{first}", f"doc{second}") == pytest.approx(score_by_hand(*texts), abs=1e-5)
        assert BASELINE.score(f"doc{second}", f"doc{first}") == BASELINE.score(f"doc{first}", f"doc{second}")


def test_a_document_without_a_known_word_fits_nothing() -> None:
    documents = [*DOCUMENTS[:3], make_document("none", f"the 42 {WORDS[100]}")]
    baseline = HiddenTopics().fit_words(read_texts(documents), VECTORS)
    assert baseline.search(documents[3], k=5) == []
    assert "none" not in dict(baseline.search(documents[0], k=5))
    assert baseline.score("doc0", "none") == baseline.score("none", "none") == 0


def test_rare_words_of_the_source_are_left_out() -> None:
    few = HiddenTopics(config=HiddenTopicsConfig(n_topics=2, n_known_words=10))
    few.fit_words(read_texts([make_document("a", " ".join(WORDS[5:15])), make_document("b", WORDS[12])]), VECTORS)
    assert few.score("a", "b") == 0
    assert few.settings.items() >= {"n_topics": 2, "n_known_words": 10, "word2vec_seed": 0}.items()
