"""Hard negatives: the rules by hand, and both miners compared with slower rankings."""

from __future__ import annotations

import sys

import pytest

from engine.errors import MissingExtra, QueryError
from engine.index import Index
from engine.search.request import Request
from engine.training.corpus import TrainingCorpus
from engine.training.judgments import Judgments
from engine.training.tasks.mining import IndexMiner, LexicalMiner, hard_negatives
from tests.fakes import make_corpus, make_document
from tests.training.made import training_corpus

RANKING = [("a", 1.0), ("b", 0.9), ("c", 0.8), ("d", 0.7), ("e", 0.4)]


@pytest.mark.parametrize(
    ("related", "margin", "expected"),
    [
        (["a"], 0.85, ["c", "d", "e"]),  # at most 0.85
        (["a"], 0.8, ["c", "d", "e"]),  # the bound itself counts
        (["a"], 0.75, ["d", "e"]),
        (["c"], 1.0, ["d", "e"]),  # a document above a positive may be a positive, too
        (["c", "e"], 1.0, ["d"]),  # the best related target decides
        (["c", "e"], 0.85, []),
        (["a", "b", "c", "d", "e"], 1.0, []),
        (["other"], 0.5, ["a", "b", "c", "d", "e"]),  # no related target is in the ranking
        ([], 0.5, ["a", "b", "c", "d", "e"]),
    ],
)
def test_negatives_score_below_the_margin_of_the_best_related_target(
    related: list[str], margin: float, expected: list[str]
) -> None:
    assert hard_negatives(RANKING, dict.fromkeys(related, 1), frozenset(), margin) == expected


def test_held_out_documents_are_no_negatives_but_may_set_the_bound() -> None:
    assert hard_negatives(RANKING, {"c": 1}, frozenset("d"), 1.0) == ["e"]
    assert hard_negatives(RANKING, {"c": 1}, frozenset("c"), 1.0) == ["d", "e"]


def corpus_of(index_documents: int, pairs: Judgments, held_out: tuple[str, ...] = ()) -> TrainingCorpus:
    return training_corpus(make_corpus(index_documents), pairs, held_out=held_out)


def test_negatives_of_an_index_are_the_hits_of_its_search_in_order(index: Index) -> None:
    miner = IndexMiner(index, corpus_of(60, {}), depth=20)
    for query_id in ("doc004", "doc031"):
        hits = index.search(query_id, Request(k=20, exact=True)).hits
        assert miner.negatives(query_id) == [hit.doc_id for hit in hits]


def test_an_index_leaves_out_related_too_similar_held_out_and_foreign_documents(index: Index) -> None:
    hits = index.search("doc004", Request(k=60, exact=True)).hits
    related, held_out = hits[1], hits[6]
    corpus = corpus_of(55, {"doc004": {related.doc_id: 1}}, (held_out.doc_id,))
    expected = [
        hit.doc_id
        for hit in hits
        if hit.score <= 0.9 * related.score and hit.doc_id < "doc055" and hit not in (related, held_out)
    ]
    assert expected
    assert IndexMiner(index, corpus, margin=0.9).negatives("doc004") == expected


def test_a_query_that_is_not_in_the_index_is_refused(index: Index) -> None:
    with pytest.raises(QueryError, match=r"^no document 'x' among 60 in "):
        IndexMiner(index, corpus_of(60, {})).negatives("x")


TEXTS = {
    "query": "zebra crossing the street near a house",
    "rare": "one zebra near the street",
    "common": "a street and a house",
    "house": "house house house house",
    "other": "nothing of it",
    "words": "the of and",
    "signs": "!?",
}


def lexical(pairs: Judgments | None = None, **options: float) -> LexicalMiner:
    pytest.importorskip("bm25s")
    documents = [make_document(name, text) for name, text in TEXTS.items()]
    return LexicalMiner(training_corpus(documents, pairs or {}), **options)  # type: ignore[arg-type]


def test_words_find_documents_that_share_rare_ones_first() -> None:
    """Rare shared words count more; counted by hand: zebra is in 2 texts, near in 2, street in 3, house in 3."""
    assert lexical().negatives("query") == ["rare", "common", "house"]
    assert lexical(depth=1).negatives("query") == ["rare"]


def test_lexical_negatives_leave_out_related_and_too_similar_documents() -> None:
    assert lexical({"query": {"rare": 1}}).negatives("query") == ["common", "house"]
    assert lexical({"query": {"house": 1}}, margin=1.0).negatives("query") == []


@pytest.mark.parametrize("query_id", ["words", "signs"])
def test_a_query_of_nothing_but_stop_words_or_signs_has_no_negatives(query_id: str) -> None:
    assert lexical().negatives(query_id) == []


def test_a_corpus_without_words_has_no_negatives() -> None:
    pytest.importorskip("bm25s")
    documents = [make_document("one", "the"), make_document("other", "of and")]
    assert LexicalMiner(training_corpus(documents, {})).negatives("one") == []


def test_a_missing_bm25s_raises_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtra) as raised:
        LexicalMiner(training_corpus(make_corpus(3), {}))
    assert str(raised.value).startswith("mining with BM25 needs bm25s; install it: pip install 'accelerate>=1.10' ")
