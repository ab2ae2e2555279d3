from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks.baselines.tfidf_system import TfIdf
from tests.fakes import make_document

pytest.importorskip("sklearn")

TEXTS = {"one": "zebra zebra lion", "two": "zebra lion lion tiger", "three": "tiger bear", "four": "wolf"}
CORPUS = [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


def vector_by_hand(doc_id: str) -> dict[str, float]:
    words = TEXTS[doc_id].split()
    df = {word: sum(word in text.split() for text in TEXTS.values()) for word in words}
    raw = {word: (1 + math.log(words.count(word))) * (1 + math.log(5 / (1 + df[word]))) for word in words}
    length = math.sqrt(sum(value**2 for value in raw.values()))
    return {word: value / length for word, value in raw.items()}


def cosine_by_hand(first: str, second: str) -> float:
    one, other = vector_by_hand(first), vector_by_hand(second)
    return sum(value * other.get(word, 0) for word, value in one.items())


def test_scores_equal_the_equation() -> None:
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


def test_a_query_is_asked_by_its_text_whatever_its_id() -> None:
    tfidf = TfIdf().fit(CORPUS)
    draft, namesake = (replace(CORPUS[1], doc_id=doc_id) for doc_id in ("draft", "four"))
    expected = {doc_id: cosine_by_hand("two", doc_id) for doc_id in ("one", "two", "three")}
    assert dict(tfidf.search(draft, k=10)) == pytest.approx(expected, abs=1e-6)
    assert dict(tfidf.search(namesake, k=10)) == pytest.approx(expected, abs=1e-6)
    assert tfidf.search(make_document("new", "giraffe"), k=10) == []


def test_fitting_again_forgets_the_corpus_before() -> None:
    other = [make_document("a", "lion wolf"), make_document("b", "lion")]
    assert [doc_id for doc_id, _ in TfIdf().fit(CORPUS).fit(other).search(other[0], k=5)] == ["b"]
