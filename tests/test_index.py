"""The public methods of an open index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import DocumentError, IndexMismatch, QueryError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document


def test_counts_are_those_of_the_indexed_documents_and_chunks(index: Index, corpus: list[Document]) -> None:
    encoded = FakeEncoder().encode(corpus)
    assert index.n_documents == len(corpus)
    assert index.n_chunks == sum(len(one.chunks) for one in encoded)


def test_a_document_comes_back_as_it_was_indexed(index: Index, corpus: list[Document]) -> None:
    for document in corpus[::7]:
        assert index.document(document.doc_id) == document


def test_all_document_vectors_come_with_their_names(index: Index, corpus: list[Document]) -> None:
    names, vectors = index.document_vectors()
    assert names == [document.doc_id for document in corpus]
    np.testing.assert_allclose(vectors, [one.document for one in FakeEncoder().encode(corpus)], atol=1e-3)


def test_a_section_matrix_holds_the_cosine_of_each_pair(index: Index, corpus: list[Document]) -> None:
    matrix = index.section_matrix(corpus[4], "doc009")
    one, other = FakeEncoder().encode([corpus[4], corpus[9]])
    by_hand = [[float(a @ b) for b in other.sections] for a in one.sections]
    np.testing.assert_allclose(matrix.cosines, by_hand, atol=2e-3)
    assert (matrix.query, matrix.target) == (corpus[4], corpus[9])


def test_a_section_matrix_by_id_equals_that_of_the_document(index: Index, corpus: list[Document]) -> None:
    by_name = index.section_matrix("doc004", "doc009")
    assert np.array_equal(by_name.cosines, index.section_matrix(corpus[4], "doc009").cosines)


def test_a_stored_query_has_spans_and_coverage_of_its_document(index: Index, corpus: list[Document]) -> None:
    query = index.stored_query("doc004")
    encoded = FakeEncoder().encode([corpus[4]])[0]
    assert query.vectors.chunk_spans == encoded.chunk_spans
    assert query.vectors.coverage == encoded.coverage
    assert query.document == corpus[4]


def test_chunk_vectors_are_those_of_the_document_in_reading_order(index: Index, corpus: list[Document]) -> None:
    for document in corpus[::11]:
        vectors = index.chunk_vectors(document.doc_id)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, FakeEncoder().encode([document])[0].chunks, atol=1e-3)
        assert np.array_equal(vectors, index.stored_query(document.doc_id).vectors.chunks)


def test_a_ranking_by_name_is_that_of_search_without_the_document(index: Index, corpus: list[Document]) -> None:
    for document in corpus[::11]:
        hits = index.search(document.doc_id, Request(k=7, exact=True)).hits
        ranked = index.rank_id(document.doc_id, k=7)
        assert [doc_id for doc_id, _ in ranked] == [hit.doc_id for hit in hits]
        assert [score for _, score in ranked] == pytest.approx([hit.score for hit in hits], abs=1e-6)


@pytest.mark.parametrize(
    "lookup",
    [
        Index.document,
        Index.search,
        Index.stored_query,
        Index.chunk_vectors,
        lambda index, doc_id: index.rank_id(doc_id, k=3),
    ],
)
def test_an_unknown_id_is_refused_with_similar_ids(index: Index, lookup: object) -> None:
    with pytest.raises(QueryError) as raised:
        lookup(index, "oc05")  # type: ignore[operator]
    assert str(raised.value) == (
        f"no document 'oc05' among 60 in {index.snapshot.folder}; did you mean 'doc050', 'doc051', 'doc052'?"
    )


def test_an_unknown_id_without_similar_ids_is_refused_with_the_command_that_lists_ids(index: Index) -> None:
    with pytest.raises(QueryError) as raised:
        index.document("100%")
    assert str(raised.value) == (
        f"no document '100%' among 60 in {index.snapshot.folder}; list them: longmatch show INDEX --documents"
    )


def test_another_encoder_is_refused_at_opening(built_folder: Path) -> None:
    with pytest.raises(IndexMismatch) as raised:
        Index.open(built_folder, encoder=FakeEncoder(fingerprint="0" * 32))
    with Index.open(built_folder) as index:
        counts = f"{index.n_chunks:,} chunks, {int(index.snapshot.tokens.sum()):,} tokens"
    assert str(raised.value) == (
        f"{built_folder} was built with encoder 'fake' (fingerprint ffffffffffff), the one at hand has fingerprint "
        f"000000000000; restore the encoder's files, or encode 60 documents again ({counts}): longmatch index "
        f"{built_folder} --reencode"
    )


def test_the_recorded_encoder_is_loaded_when_first_needed(tmp_path: Path, bert_folder: Path) -> None:
    document = make_document("a", "the quick brown fox. " * 20)
    build(tmp_path / "x.lm", [document], encoder=str(bert_folder), device="cpu")
    with Index.open(tmp_path / "x.lm", device="cpu") as index:
        assert index.search("a").hits == ()
        assert index.search(document, Request(with_itself=True)).hits[0].score == pytest.approx(1, abs=5e-3)
        assert index.encoder.name == str(bert_folder)


def test_an_encoder_of_changed_weights_is_refused(tmp_path: Path, bert_folder: Path, other_bert_folder: Path) -> None:
    moving = tmp_path / "encoder"
    moving.symlink_to(bert_folder)
    document = make_document("a", "the quick brown fox.")
    build(tmp_path / "x.lm", [document], encoder=str(moving), device="cpu")
    moving.unlink()
    moving.symlink_to(other_bert_folder)
    with Index.open(tmp_path / "x.lm", device="cpu") as index, pytest.raises(IndexMismatch, match="was built with"):
        index.search(document)


def test_a_query_without_text_is_refused(index: Index) -> None:
    with pytest.raises(DocumentError, match="void: no text that the tokenizer can read"):
        index.search(make_document("void", "  "))


def test_a_path_may_be_text(built_folder: Path) -> None:
    with Index.open(str(built_folder)) as index:
        assert index.n_documents == 60


@pytest.mark.slow
def test_a_search_by_id_loads_no_torch(built_folder: Path) -> None:
    code = (
        "import sys; from engine.index import Index; "
        f"print(len(Index.open({str(built_folder)!r}).search('doc003').hits), 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "10 False\n"
