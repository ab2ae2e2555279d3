from __future__ import annotations

import math

import numpy as np

from benchmarks.baselines.bm25_pairs import BM25Pairs
from benchmarks.bm25 import K1, B
from benchmarks.pairs.scorer import Budget, Fit, Pair
from tests.fakes import make_document

TEXTS = {
    "one": "zebra zebra lion",
    "two": "zebra lion lion tiger",
    "three": "tiger bear",
    "four": "the of and",
    "five": "wolf",
}
DOCUMENTS = {doc_id: make_document(doc_id, text) for doc_id, text in TEXTS.items()}


def bm25_by_hand(query: str, target: str) -> float:
    """Lucene's BM25, a word of the query at a time; to bm25s a text without words is one empty word."""
    bags = {doc_id: [word for word in text.split() if len(word) > 3] or [""] for doc_id, text in TEXTS.items()}
    mean = sum(map(len, bags.values())) / len(bags)
    score = 0.0
    for word in bags[query]:
        df = sum(word in bag for bag in bags.values())
        tf = bags[target].count(word)
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        score += idf * tf / (tf + K1 * (1 - B + B * len(bags[target]) / mean)) if tf else 0.0
    return score


def scores(*pairs: tuple[str, str]) -> list[float]:
    bm25 = BM25Pairs()
    bm25.fit(Fit(DOCUMENTS, [], [], Budget(0, 0, 0.0), 0))
    return bm25.score([Pair(first, second, True) for first, second in pairs]).tolist()


def test_scores_are_shares_of_what_the_query_scores_itself() -> None:
    asked = [("one", "two"), ("two", "one"), ("two", "three"), ("one", "three"), ("two", "two")]
    expected = [bm25_by_hand(first, second) / bm25_by_hand(first, first) for first, second in asked]
    np.testing.assert_allclose(scores(*asked), expected, rtol=1e-5)
    assert expected[-2:] == [0.0, 1.0]


def test_a_document_of_stop_words_matches_nothing() -> None:
    assert scores(("four", "one"), ("one", "four")) == [0.0, 0.0]
