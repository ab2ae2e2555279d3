from __future__ import annotations

import math

import pytest

from benchmarks.bm25 import BM25, K1, B
from engine.document import Document
from engine.segmentation import divide


def document(doc_id: str, text: str) -> Document:
    return Document(doc_id, "", text, divide(text))


CORPUS = [
    document("one", "zebra zebra lion"),
    document("two", "zebra lion lion tiger"),
    document("three", "tiger bear"),
    document("four", "wolf"),
]


def term_by_hand(tf: int, df: int, length: int) -> float:
    """Lucene's BM25 of one term; the four texts are 2.5 words long on average."""
    idf = math.log(1 + (4 - df + 0.5) / (df + 0.5))
    return idf * tf / (tf + K1 * (1 - B + B * length / 2.5))


def test_scores_equal_the_equation() -> None:
    ranking = BM25().fit(CORPUS).search(document("query", "zebras, tiger"), k=10)
    expected = {
        "two": term_by_hand(1, 2, 4) + term_by_hand(1, 2, 4),
        "one": term_by_hand(2, 2, 3),
        "three": term_by_hand(1, 2, 2),
    }
    assert dict(ranking) == pytest.approx(expected)
    assert [doc_id for doc_id, _ in ranking] == sorted(expected, key=lambda doc_id: -expected[doc_id])


def test_a_query_never_finds_itself() -> None:
    bm25 = BM25().fit(CORPUS)
    assert [doc_id for doc_id, _ in bm25.search(CORPUS[0], k=3)] == ["two"]
    assert [doc_id for doc_id, _ in bm25.search(CORPUS[1], k=1)] == ["one"]


def test_a_word_counts_as_often_as_the_query_says_it() -> None:
    bm25 = BM25().fit(CORPUS)
    once, thrice = (bm25.search(document("query", text), k=1)[0][1] for text in ("wolf", "wolf wolf wolf"))
    assert thrice == pytest.approx(3 * once)


def test_a_query_of_unknown_or_stop_words_finds_nothing() -> None:
    bm25 = BM25().fit(CORPUS)
    assert [bm25.search(document("query", text), k=5) for text in ("the of and", "giraffe")] == [[], []]


def test_fitting_again_forgets_the_corpus_before() -> None:
    bm25 = BM25().fit(CORPUS).fit([document("other", "zebra wolf"), document("last", "lion")])
    assert [doc_id for doc_id, _ in bm25.search(document("query", "zebra"), k=5)] == ["other"]
