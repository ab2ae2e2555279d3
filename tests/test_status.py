"""The status of a result: certified, estimated, or partial where evidence is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import SegmentedDocument
from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from engine.result import Status
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document

BY_WORDS = Scoring(chunk_weight=0)


class FirstWords(FakeEncoder):
    """Reads no more than the first half of the chunks of a document."""

    def segment(self, document: Document) -> SegmentedDocument:
        whole = super().segment(document)
        n = len(whole.chunks) // 2
        n_tokens = sum(chunk.n_tokens for chunk in whole.chunks[:n])
        coverage = replace(whole.coverage, tokens_read=n_tokens)
        return replace(whole, chunks=whole.chunks[:n], token_ids=whole.token_ids[:n], coverage=coverage)


@pytest.fixture
def sparse(tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index where four documents of sixty have vectors."""
    for name in ("FIRST_DOCUMENTS", "FEWEST_FIRST"):
        monkeypatch.setattr(f"indexer.generation.reference.{name}", 4)
    monkeypatch.setattr("indexer.generation.reference.ALL_TOKENS", 0)
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), encode="later")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder(), store=False) as opened:
        yield opened


def test_a_hit_without_vectors_makes_a_result_partial(sparse: Index, corpus: list[Document]) -> None:
    few = sparse.search(corpus[3], Request(k=5, candidates=40, with_itself=True))
    assert all(hit.has_vectors for hit in few)
    assert few.status is Status.ESTIMATED  # other documents were ranked by words alone
    many = sparse.search(corpus[3], Request(k=60, candidates=40, with_itself=True))
    assert not all(hit.has_vectors for hit in many)
    assert many.status is Status.PARTIAL


def test_a_candidate_that_was_not_encoded_makes_a_result_partial(sparse: Index, corpus: list[Document]) -> None:
    result = sparse.search(corpus[3], Request(k=1, candidates=30, encode_tokens=1, with_itself=True))
    assert result.encoding is not None and result.encoding.n_encoded < result.encoding.n_candidates
    assert all(hit.has_vectors for hit in result)
    assert result.status is Status.PARTIAL


def test_a_search_by_words_alone_is_never_partial(sparse: Index, corpus: list[Document]) -> None:
    assert sparse.search(corpus[3], Request(k=60, scoring=BY_WORDS, with_itself=True)).status is not Status.PARTIAL


def test_once_all_documents_have_vectors_a_result_is_certified(sparse: Index, corpus: list[Document]) -> None:
    result = sparse.search(corpus[3], Request(k=60, candidates=1_000, where="topic = 3", with_itself=True))
    assert result.status is Status.CERTIFIED


def test_a_query_that_is_not_read_to_its_end_makes_a_result_partial(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:20], encoder=FirstWords(), encode="all")
    with Index.open(tmp_path / "x.lm", encoder=FirstWords()) as index:
        result = index.search(corpus[3], Request(with_itself=True))
        assert result.query_coverage.tokens_read < result.query_coverage.tokens_total
        assert result.status is index.search("doc003").status is Status.PARTIAL
        assert index.search(corpus[3], Request(scoring=BY_WORDS, with_itself=True)).status is Status.CERTIFIED


def test_an_index_of_words_alone_is_certified_by_text_and_by_id(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:20], encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        assert (
            index.search(corpus[3], Request(with_itself=True)).status
            is index.search("doc003").status
            is Status.CERTIFIED
        )


def test_an_index_of_words_alone_has_no_section_matrix(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:5], encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        for query in (corpus[1], "doc001"):
            with pytest.raises(IndexMismatch, match="holds words alone; add vectors: longmatch index "):
                index.section_matrix(query, "doc002")


def test_a_matrix_of_sections_without_vectors_is_refused(
    index: Index, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = index.stored_query("doc002")
    bare = replace(stored, vectors=replace(stored.vectors, sections=np.zeros((0, 32), np.float32)))
    monkeypatch.setattr(index, "stored_query", lambda _: bare)
    with pytest.raises(QueryError) as raised:
        index.section_matrix(corpus[1], "doc002")
    assert str(raised.value) == "'doc002' has no token, so that its sections have no vectors"


def test_a_matrix_has_a_row_and_a_column_for_each_section(index: Index) -> None:
    query = make_document("q", [("one", "topic2word1 common1"), ("two", "topic3word1")])
    assert index.section_matrix(query, "doc002").cosines.shape == (2, 3)
