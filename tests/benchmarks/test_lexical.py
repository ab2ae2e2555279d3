from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.lexical import BM25, K1, B, TfIdf, ranking
from benchmarks.pairs.scorers import bm25_scorer, tfidf_scorer
from benchmarks.pairs.scoring import Budget, Fit, Pair
from engine.text.document import Document
from engine.text.segmentation import divide
from tests.fakes import make_document

SCORES = np.array([1.0, 3.0, 2.0, 2.0, 0.0])


def test_the_best_come_first_and_equal_ones_in_their_order() -> None:
    assert ranking("abcde", SCORES, 3, own=0, least=0.0) == [("b", 3.0), ("c", 2.0), ("d", 2.0)]


def test_the_query_is_left_out_wherever_it_stands() -> None:
    assert ranking("abcde", SCORES, 2, own=1, least=0.0) == [("c", 2.0), ("d", 2.0)]
    assert ranking("abcde", SCORES, 9, own=4, least=-1.0) == [("b", 3.0), ("c", 2.0), ("d", 2.0), ("a", 1.0)]


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


def test_bm25_scores_equal_the_equation() -> None:
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


def test_a_query_of_unknown_or_stop_words_finds_nothing() -> None:
    bm25 = BM25().fit(CORPUS)
    assert [bm25.search(document("query", text), k=5) for text in ("the of and", "giraffe")] == [[], []]


pytest.importorskip("sklearn")


TEXTS = {"one": "zebra zebra lion", "two": "zebra lion lion tiger", "three": "tiger bear", "four": "wolf"}
TFIDF_CORPUS = [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


def vector_by_hand(doc_id: str) -> dict[str, float]:
    words = TEXTS[doc_id].split()
    df = {word: sum(word in text.split() for text in TEXTS.values()) for word in words}
    raw = {word: (1 + math.log(words.count(word))) * (1 + math.log(5 / (1 + df[word]))) for word in words}
    length = math.sqrt(sum(value**2 for value in raw.values()))
    return {word: value / length for word, value in raw.items()}


def cosine_by_hand(first: str, second: str) -> float:
    one, other = vector_by_hand(first), vector_by_hand(second)
    return sum(value * other.get(word, 0) for word, value in one.items())


def test_tfidf_scores_equal_the_equation() -> None:
    tfidf = TfIdf().fit(TFIDF_CORPUS)
    for first in TEXTS:
        for second in TEXTS:
            assert tfidf.score(first, second) == pytest.approx(cosine_by_hand(first, second), abs=1e-6)


def test_search_ranks_by_the_same_score_and_finds_only_what_shares_a_word() -> None:
    ranking = TfIdf().fit(TFIDF_CORPUS).search(TFIDF_CORPUS[1], k=10)
    expected = {doc_id: cosine_by_hand("two", doc_id) for doc_id in ("one", "three")}
    assert dict(ranking) == pytest.approx(expected, abs=1e-6)
    assert [doc_id for doc_id, _ in ranking] == ["one", "three"]
    assert TfIdf().fit(TFIDF_CORPUS).search(TFIDF_CORPUS[3], k=10) == []


def test_a_query_is_scored_by_its_text_whatever_its_id() -> None:
    tfidf = TfIdf().fit(TFIDF_CORPUS)
    draft, namesake = (replace(TFIDF_CORPUS[1], doc_id=doc_id) for doc_id in ("draft", "four"))
    expected = {doc_id: cosine_by_hand("two", doc_id) for doc_id in ("one", "two", "three")}
    assert dict(tfidf.search(draft, k=10)) == pytest.approx(expected, abs=1e-6)
    assert dict(tfidf.search(namesake, k=10)) == pytest.approx(expected, abs=1e-6)
    assert tfidf.search(make_document("new", "giraffe"), k=10) == []


TEXTS_bm25_pairs = {
    "one": "zebra zebra lion",
    "two": "zebra lion lion tiger",
    "three": "tiger bear",
    "four": "the of and",
    "five": "wolf",
}
DOCUMENTS = {doc_id: make_document(doc_id, text) for doc_id, text in TEXTS_bm25_pairs.items()}


def bm25_by_hand(query: str, target: str) -> float:
    """Lucene's BM25, one word of the query at a time; bm25s treats a text without words as one empty word."""
    bags = {
        doc_id: [word for word in text.split() if len(word) > 3] or [""] for doc_id, text in TEXTS_bm25_pairs.items()
    }
    mean = sum(map(len, bags.values())) / len(bags)
    score = 0.0
    for word in bags[query]:
        df = sum(word in bag for bag in bags.values())
        tf = bags[target].count(word)
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        score += idf * tf / (tf + K1 * (1 - B + B * len(bags[target]) / mean)) if tf else 0.0
    return score


def scores(*pairs: tuple[str, str]) -> list[float]:
    bm25 = bm25_scorer()
    bm25.fit(Fit(DOCUMENTS, [], [], Budget(0, 0), 0))
    return bm25.score([Pair(first, second, True) for first, second in pairs]).tolist()


def test_scores_are_shares_of_the_score_of_the_query_with_itself() -> None:
    pairs = [("one", "two"), ("two", "one"), ("two", "three"), ("one", "three"), ("two", "two")]
    expected = [bm25_by_hand(first, second) / bm25_by_hand(first, first) for first, second in pairs]
    np.testing.assert_allclose(scores(*pairs), expected, rtol=1e-5)
    assert expected[-2:] == [0.0, 1.0]


def test_tfidf_scores_pairs_by_the_same_cosine() -> None:
    documents = {document.doc_id: document for document in TFIDF_CORPUS}
    pairs = [Pair("one", "two", True), Pair("three", "four", False)]
    scorer = tfidf_scorer()
    scorer.fit(Fit(documents, pairs, pairs, Budget(steps=1, pairs_per_step=1), 3))
    np.testing.assert_allclose(scorer.score(pairs), [cosine_by_hand("one", "two"), 0.0], atol=1e-6)
    assert (scorer.name, scorer.settings) == ("tfidf", TfIdf().settings)
