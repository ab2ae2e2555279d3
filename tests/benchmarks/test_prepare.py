from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.prepare import index_documents, label_of
from benchmarks.speed import growth
from engine.index import Index
from indexer import build
from tests.benchmarks.made_runs import error_of
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_an_encoder_is_named_with_its_fingerprint() -> None:
    assert label_of("folder/of/my model", "f" * 32) == "my_model@ffffffffffff"


def test_growth_refuses_an_index_of_words_alone(tmp_path: Path) -> None:
    build(tmp_path / "words.lm", make_corpus(3), encode="none")
    error = error_of(growth.main, tmp_path / "words.lm", "--out", tmp_path)
    assert "holds words alone and no vectors; add them: longmatch index" in error


def test_documents_of_the_same_name_are_replaced(tmp_path: Path) -> None:
    index_documents(tmp_path / "a.lm", make_corpus(5), FakeEncoder())
    index_documents(tmp_path / "a.lm", [make_document("doc003", "another text")], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        assert (index.n_documents, index.document("doc003").text) == (5, "another text")


def test_a_document_without_text_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="1 documents were not indexed, the first is 'empty': empty: no text"):
        index_documents(tmp_path / "a.lm", [*make_corpus(5), make_document("empty", " ")], FakeEncoder())
