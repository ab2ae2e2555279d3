from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from benchmarks.baselines.lexical import BM25, K1, B, TfIdf, ranking
from benchmarks.baselines.text_baselines import (
    TEXT_BASELINES,
    Doc2Vec,
    Doc2VecConfig,
    Stretches,
    TextBaseline,
    Texts,
    Word2VecConfig,
    fitted_baselines,
    read_texts,
    word_vectors,
)
from benchmarks.pairs.scorers import bm25_scorer, text_scorer
from benchmarks.pairs.scoring import Budget, Fit, Pair
from engine.errors import TrainingError
from engine.text.document import Document
from engine.text.segmentation import divide
from tests.fakes import make_document

WORDS = ["".join(letters) for letters in product("bdfgk", "aeiou", "lmnr", "qz")]  # 200, no stop words, no digits


def random_documents(n_documents: int, n_words: int, longest: int, seed: int = 1) -> list[Document]:
    """Each draws its words from a window of the first `n_words`, so that some are near each other."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(n_documents):
        window = rng.integers(n_words) + rng.integers(0, n_words // 3, rng.integers(1, longest + 1))
        documents.append(make_document(f"doc{number}", " ".join(WORDS[at % n_words] for at in window)))
    return documents


def texts_of(texts: Sequence[str]) -> Texts:
    """The texts of documents named d0, d1, and so on."""
    return read_texts(make_document(f"d{number}", text) for number, text in enumerate(texts))


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


pytest.importorskip("gensim")


TINY_DOC2VEC = Doc2VecConfig(width=16, window=5, min_count=2, sample=0.1, epochs=20)


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    """Two kinds of documents that share no word, and one of words that stand nowhere else."""
    rng = np.random.default_rng(0)
    made = [" ".join(rng.permutation(WORDS[10 * (n % 2) :][:10])) for n in range(40)]
    return [make_document(f"d{n}", text) for n, text in enumerate([*made, "unheard unseen"])]


@pytest.fixture(scope="module")
def doc2vec(corpus: list[Document]) -> Doc2Vec:
    return Doc2Vec(TINY_DOC2VEC).fit(corpus)


def test_documents_of_the_same_words_come_first(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    found = [int(doc_id[1:]) for doc_id, _ in doc2vec.search(corpus[3], k=19)]
    assert sorted(found) == [n for n in range(1, 40, 2) if n != 3]


def test_search_and_score_agree(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    ranking = doc2vec.search(corpus[0], k=100)
    assert len(ranking) == 39
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    assert dict(ranking) == pytest.approx({doc_id: doc2vec.score("d0", doc_id) for doc_id, _ in ranking}, abs=1e-6)
    assert doc2vec.score("d5", "d5") == pytest.approx(1)


def test_a_document_without_a_known_word_finds_nothing_and_is_not_found(
    doc2vec: Doc2Vec, corpus: list[Document]
) -> None:
    assert doc2vec.search(corpus[40], k=5) == []
    assert "d40" not in dict(doc2vec.search(corpus[0], k=100))
    assert doc2vec.score("d0", "d40") == 0


def test_the_same_seed_gives_the_same_scores(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    again = Doc2Vec(TINY_DOC2VEC).fit(corpus)
    assert [again.score("d0", f"d{n}") for n in range(40)] == [doc2vec.score("d0", f"d{n}") for n in range(40)]


def test_another_text_is_inferred_the_same_way_each_time(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    draft, namesake = (replace(corpus[3], doc_id=doc_id, text=corpus[3].text + " ") for doc_id in ("draft", "d2"))
    found = [int(doc_id[1:]) for doc_id, _ in doc2vec.search(draft, k=20)]
    assert sorted(found) == list(range(1, 40, 2))
    doc2vec.search(corpus[0], k=5)
    assert doc2vec.search(draft, k=20) == doc2vec.search(namesake, k=20)
    assert doc2vec.search(replace(draft, text="unheard"), k=5) == []


def test_words_behind_the_ten_thousandth_count() -> None:
    filler = "filler " * 10_000
    documents = [make_document(str(n), filler * (n < 2) + f"{WORDS[n % 2]} " * 300) for n in range(4)]
    doc2vec = Doc2Vec(Doc2VecConfig(width=8, min_count=1, sample=0, epochs=5)).fit(documents)
    assert doc2vec.score("0", "2") > doc2vec.score("1", "2") + 0.1
    assert doc2vec.score("1", "3") > doc2vec.score("0", "3") + 0.1


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


def test_texts_without_a_frequent_word_are_refused() -> None:
    with pytest.raises(TrainingError, match="no word stands 5 times in these texts; lower min_count"):
        word_vectors(replace(TINY, min_count=5), texts_of(["cat dog"]))


@pytest.mark.parametrize(
    ("n_words", "n_epochs"), [(0, 10), (99, 10), (100, 10), (300, 4), (999, 2), (1000, 1), (5000, 1)]
)
def test_a_large_corpus_gets_as_many_epochs_as_make_enough_words(n_words: int, n_epochs: int) -> None:
    assert Word2VecConfig(epochs=10, enough_words=1000).epochs_over(n_words) == n_epochs


SYSTEM_DOCUMENTS = random_documents(15, 60, 30)


@pytest.fixture(scope="module")
def fitted_text_baselines() -> dict[str, TextBaseline]:
    made = fitted_baselines(TEXT_BASELINES, lambda: SYSTEM_DOCUMENTS, seed=3)
    return {baseline.name: baseline for baseline, _ in made}


def test_every_baseline_is_fitted_under_its_name(fitted_text_baselines: dict[str, TextBaseline]) -> None:
    assert tuple(fitted_text_baselines) == TEXT_BASELINES
    assert fitted_text_baselines["doc2vec"].settings["seed"] == 3


def test_pairs_are_scored_by_the_same_baseline(fitted_text_baselines: dict[str, TextBaseline]) -> None:
    documents = {document.doc_id: document for document in SYSTEM_DOCUMENTS}
    pairs = [Pair("doc0", "doc1", True), Pair("doc2", "doc5", False)]
    for name in TEXT_BASELINES:
        scorer = text_scorer(name)
        scorer.fit(Fit(documents, pairs, pairs, Budget(steps=1, pairs_per_step=1), 3))
        expected = [fitted_text_baselines[name].score(pair.first, pair.second) for pair in pairs]
        np.testing.assert_allclose(scorer.score(pairs), expected, atol=1e-6)
        assert (scorer.name, scorer.settings) == (name, fitted_text_baselines[name].settings)
