from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.baselines.doc2vec import Doc2Vec, Doc2VecConfig
from engine.text.document import Document
from tests.benchmarks.baselines.small_words import WORDS
from tests.fakes import make_document

pytest.importorskip("gensim")

TINY = Doc2VecConfig(width=16, window=5, min_count=2, sample=0.1, epochs=20)


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    """Two kinds of documents that share no word, and one of words that stand nowhere else."""
    rng = np.random.default_rng(0)
    made = [" ".join(rng.permutation(WORDS[10 * (n % 2) :][:10])) for n in range(40)]
    return [make_document(f"d{n}", text) for n, text in enumerate([*made, "unheard unseen"])]


@pytest.fixture(scope="module")
def doc2vec(corpus: list[Document]) -> Doc2Vec:
    return Doc2Vec(TINY).fit(corpus)


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
    again = Doc2Vec(TINY).fit(corpus)
    assert [again.score("d0", f"d{n}") for n in range(40)] == [doc2vec.score("d0", f"d{n}") for n in range(40)]


def test_another_text_is_inferred_the_same_way_each_time(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    draft, namesake = (replace(corpus[3], doc_id=doc_id, text=corpus[3].text + " ") for doc_id in ("draft", "d2"))
    found = [int(doc_id[1:]) for doc_id, _ in doc2vec.search(draft, k=20)]
    assert sorted(found) == list(range(1, 40, 2))
    doc2vec.search(corpus[0], k=5)
    assert doc2vec.search(draft, k=20) == doc2vec.search(namesake, k=20)
    assert doc2vec.search(replace(draft, text="unheard"), k=5) == []


@pytest.mark.slow
def test_a_long_query_is_read_to_its_end(doc2vec: Doc2Vec, corpus: list[Document]) -> None:
    rng = np.random.default_rng(0)
    beginning = " ".join(rng.choice(WORDS[:20], 10_000))
    ends = [" ".join(rng.choice(WORDS[first : first + 10], 10_000)) for first in (0, 10)]
    even, odd = (doc2vec.infer(make_document("long", f"{beginning} {end}")) for end in ends)
    known = doc2vec.infer(corpus[0])
    assert even @ known > odd @ known + 0.1


def test_words_behind_the_ten_thousandth_count() -> None:
    filler = "filler " * 10_000
    documents = [make_document(str(n), filler * (n < 2) + f"{WORDS[n % 2]} " * 300) for n in range(4)]
    doc2vec = Doc2Vec(Doc2VecConfig(width=8, min_count=1, sample=0, epochs=5)).fit(documents)
    assert doc2vec.score("0", "2") > doc2vec.score("1", "2") + 0.1
    assert doc2vec.score("1", "3") > doc2vec.score("0", "3") + 0.1
