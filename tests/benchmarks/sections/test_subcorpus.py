from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.sections.subcorpus import index_documents, sample_documents
from engine.index import Index
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_a_sample_is_seeded_and_keeps_the_order_of_the_corpus() -> None:
    corpus = make_corpus(40)
    sample = sample_documents(iter(corpus), 10, seed=3)
    assert sample == sample_documents(iter(corpus), 10, seed=3) != sample_documents(iter(corpus), 10, seed=4)
    names = [document.doc_id for document in sample]
    assert len(set(names)) == 10 and names == sorted(names)
    assert sample_documents(iter(corpus), 99, seed=3) == corpus


def test_every_document_is_as_likely_as_any_other() -> None:
    corpus = make_corpus(10)
    drawn = [document.doc_id for seed in range(400) for document in sample_documents(corpus, 3, seed)]
    # 120 times each on average; five standard deviations of a binomial are 46.
    assert all(74 < drawn.count(document.doc_id) < 166 for document in corpus)


def test_long_documents_are_passed_over() -> None:
    corpus = [make_document("short", "three little words"), make_document("long", "word " * 50)]
    assert [document.doc_id for document in sample_documents(corpus, 2, 0, max_chars=100)] == ["short"]


def test_documents_of_the_same_name_are_replaced(tmp_path: Path) -> None:
    index_documents(tmp_path / "a.lm", make_corpus(5), FakeEncoder())
    index_documents(tmp_path / "a.lm", [make_document("doc003", "another text")], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        assert (index.n_documents, index.document("doc003").text) == (5, "another text")


def test_a_document_without_text_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="1 of 6 documents were not indexed, the first is 'empty': empty: no text"):
        index_documents(tmp_path / "a.lm", [*make_corpus(5), make_document("empty", " ")], FakeEncoder())
