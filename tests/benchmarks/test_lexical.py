from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.lexical import BM25, K1, B, LexicalSystem, TfIdf
from benchmarks.pairs.scorers import bm25_scorer, tfidf_scorer
from benchmarks.pairs.scoring import Budget, Fit, Learned, Pair, PairScorer
from engine.text.document import Document
from tests.fakes import make_document


class Fixed(LexicalSystem):
    """Documents a to e with scores."""

    def scores(self, query: Document) -> NDArray[np.float64]:
        return np.array([1.0, 3.0, 2.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("own", "k", "expected"),
    [("a", 3, ["b", "c", "d"]), ("b", 2, ["c", "d"]), ("new", 9, ["b", "c", "d", "a"])],
    ids=["equal ones in their order", "without the query", "without those of score 0"],
)
def test_the_best_come_first(own: str, k: int, expected: list[str]) -> None:
    system = Fixed({})
    list(system.texts(make_document(doc_id, "") for doc_id in "abcde"))
    assert [doc_id for doc_id, _ in system.search(make_document(own, ""), k)] == expected


TEXTS = {"one": "zebra zebra lion", "two": "zebra lion lion tiger", "three": "tiger bear", "four": "wolf"}
CORPUS = [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


def bm25_by_hand(query: str, target: str) -> float:
    """Lucene's BM25, one word of the query at a time; the four texts are 2.5 words long on average."""
    score, bag = 0.0, TEXTS[target].split()
    for word in query.split():
        df, tf = sum(word in text.split() for text in TEXTS.values()), bag.count(word)
        idf = math.log(1 + (4 - df + 0.5) / (df + 0.5))
        score += idf * tf / (tf + K1 * (1 - B + B * len(bag) / 2.5))
    return score


def test_bm25_scores_equal_the_equation() -> None:
    ranking = BM25().fit(CORPUS).search(make_document("query", "zebras, tiger"), k=10)
    expected = {doc_id: bm25_by_hand("zebra tiger", doc_id) for doc_id in ("two", "one", "three")}
    assert dict(ranking) == pytest.approx(expected)
    assert [doc_id for doc_id, _ in ranking] == sorted(expected, key=lambda doc_id: -expected[doc_id])


def test_a_query_never_finds_itself() -> None:
    bm25 = BM25().fit(CORPUS)
    assert [doc_id for doc_id, _ in bm25.search(CORPUS[0], k=3)] == ["two"]
    assert [doc_id for doc_id, _ in bm25.search(CORPUS[1], k=1)] == ["one"]


def test_a_query_of_unknown_or_stop_words_finds_nothing() -> None:
    bm25 = BM25().fit(CORPUS)
    assert [bm25.search(make_document("query", text), k=5) for text in ("the of and", "giraffe")] == [[], []]


pytest.importorskip("sklearn")


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
    tfidf = TfIdf().fit(CORPUS)
    for first in TEXTS:
        for second in TEXTS:
            assert tfidf.score(first, second) == pytest.approx(cosine_by_hand(first, second), abs=1e-6)


def test_search_ranks_by_the_same_score_and_finds_only_what_shares_a_word() -> None:
    ranking = TfIdf().fit(CORPUS).search(CORPUS[1], k=10)
    expected = {doc_id: cosine_by_hand("two", doc_id) for doc_id in ("one", "three")}
    assert dict(ranking) == pytest.approx(expected, abs=1e-6)
    assert [doc_id for doc_id, _ in ranking] == ["one", "three"]
    assert TfIdf().fit(CORPUS).search(CORPUS[3], k=10) == []


def test_a_query_is_scored_by_its_text_whatever_its_id() -> None:
    tfidf = TfIdf().fit(CORPUS)
    draft, namesake = (replace(CORPUS[1], doc_id=doc_id) for doc_id in ("draft", "four"))
    expected = {doc_id: cosine_by_hand("two", doc_id) for doc_id in ("one", "two", "three")}
    assert dict(tfidf.search(draft, k=10)) == pytest.approx(expected, abs=1e-6)
    assert dict(tfidf.search(namesake, k=10)) == pytest.approx(expected, abs=1e-6)
    assert tfidf.search(make_document("new", "giraffe"), k=10) == []


def learned(scorer: PairScorer) -> Learned:
    return scorer.learn(Fit({document.doc_id: document for document in CORPUS}, [], [], Budget(0, 0), 0))


def test_bm25_scores_pairs_by_the_share_of_the_score_of_the_query_with_itself() -> None:
    pairs = [("one", "two"), ("two", "one"), ("two", "three"), ("one", "three"), ("two", "two")]
    expected = [bm25_by_hand(TEXTS[query], target) / bm25_by_hand(TEXTS[query], query) for query, target in pairs]
    scores = learned(bm25_scorer()).score([Pair(query, target, True) for query, target in pairs])
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert expected[-2:] == [0.0, 1.0]


def test_tfidf_scores_pairs_by_the_same_cosine() -> None:
    scorer = tfidf_scorer()
    scores = learned(scorer).score([Pair("one", "two", True), Pair("three", "four", False)])
    np.testing.assert_allclose(scores, [cosine_by_hand("one", "two"), 0.0], atol=1e-6)
    assert (scorer.name, scorer.settings) == ("tfidf", TfIdf().settings)
