"""An index that is open: lookups, status, section matrices and threads."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.encoders.encoder import SegmentedDocument
from engine.errors import DocumentError, IndexMismatch, QueryError
from engine.index import Index
from engine.result import Result, Status
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document


def test_documents_vectors_and_counts_are_those_that_were_indexed(index: Index, corpus: list[Document]) -> None:
    encoded = FakeEncoder().encode(corpus)
    assert index.n_documents == len(corpus)
    assert index.n_chunks == sum(len(one.chunks) for one in encoded)
    for document in corpus[::7]:
        assert index.document(document.doc_id) == document
    names, vectors = index.document_vectors()
    assert names == [document.doc_id for document in corpus]
    np.testing.assert_allclose(vectors, [one.document for one in FakeEncoder().encode(corpus)], atol=1e-3)


def test_a_stored_query_has_vectors_and_spans_of_its_document(index: Index, corpus: list[Document]) -> None:
    query = index.stored_query("doc004")
    encoded = FakeEncoder().encode([corpus[4]])[0]
    assert query.vectors.chunk_spans == encoded.chunk_spans
    assert query.vectors.coverage == encoded.coverage
    assert query.document == corpus[4]
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
    assert index.snapshot.similar_names("DOC051.md") == ["doc051"] and not index.snapshot.similar_names("a much longer")


def test_an_unknown_id_and_a_query_without_text_are_refused(index: Index) -> None:
    with pytest.raises(QueryError) as raised:
        index.document("100%")
    assert str(raised.value) == (
        f"no document '100%' among 60 in {(folder := index.snapshot.folder)}; "
        f"list them: longmatch show {folder} --documents"
    )
    with pytest.raises(DocumentError, match="void: no text that the tokenizer can read"):
        index.search(make_document("void", "  "))


def test_another_encoder_is_refused_at_opening(built_folder: Path) -> None:
    with pytest.raises(IndexMismatch) as raised:
        Index.open(built_folder, encoder=FakeEncoder(fingerprint="0" * 32))
    assert str(raised.value) == (
        f"{built_folder} was built with encoder 'fake' (fingerprint ffffffffffff), the one at hand has fingerprint "
        f"000000000000; restore the encoder's files, or encode a copy without vectors: longmatch upkeep partition "
        f"{built_folder} NEW -p 1 --words"
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


@pytest.mark.slow
def test_a_search_by_id_loads_no_torch(built_folder: Path) -> None:
    code = (
        "import sys; from engine.index import Index; "
        f"print(len(Index.open({str(built_folder)!r}).search('doc003').hits), 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "10 False\n"


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
    few_first_vectors(monkeypatch, 4)
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), encode="later")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder(), store=False) as opened:
        yield opened


@pytest.mark.parametrize(
    ("options", "all_have_vectors", "status"),
    [
        ({"k": 5, "candidates": 40}, True, Status.ESTIMATED),  # other documents were ranked by words alone
        ({"k": 60, "candidates": 40}, False, Status.PARTIAL),
        ({"k": 1, "candidates": 30, "encode_tokens": 1}, True, Status.PARTIAL),  # a candidate was not encoded
        ({"k": 60, "scoring": BY_WORDS}, False, Status.ESTIMATED),
        ({"k": 60, "candidates": 1_000, "where": "topic = 3"}, True, Status.CERTIFIED),
    ],
)
def test_a_result_is_partial_where_hits_or_candidates_have_no_vectors(
    sparse: Index, corpus: list[Document], options: dict[str, Any], all_have_vectors: bool, status: Status
) -> None:
    result = sparse.search(corpus[3], Request(**options, with_itself=True))
    assert (all(hit.has_vectors for hit in result), result.status) == (all_have_vectors, status)
    if "encode_tokens" in options:
        assert result.encoding is not None and result.encoding.n_encoded < result.encoding.n_candidates


def test_a_query_that_is_not_read_to_its_end_makes_a_result_partial(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:20], encoder=FirstWords(), encode="all")
    with Index.open(tmp_path / "x.lm", encoder=FirstWords()) as index:
        result = index.search(corpus[3], Request(with_itself=True))
        assert result.query_coverage.tokens_read < result.query_coverage.tokens_total
        assert result.status is index.search("doc003").status is Status.PARTIAL
        assert index.search(corpus[3], Request(scoring=BY_WORDS, with_itself=True)).status is Status.CERTIFIED


def test_an_index_of_words_alone_is_certified(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:20], encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        assert (
            index.search(corpus[3], Request(with_itself=True)).status
            is index.search("doc003").status
            is Status.CERTIFIED
        )


N, P, THREADS = 60, 3, 8
CORPUS = make_corpus(N)


def answer(result: Result) -> list[object]:
    return [(hit.doc_id, hit.score, hit.title, [pair.contribution for pair in hit.pairs]) for hit in result]


@pytest.mark.parametrize("n_partitions", [1, P])
def test_threads_get_the_results_of_one_thread(tmp_path: Path, n_partitions: int) -> None:
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.1)
    folder = tmp_path / "x.lm"
    if n_partitions > 1:
        partition(folder, tmp_path / "x.parts", n_partitions)
        folder = tmp_path / "x.parts"
    queries: list[Document | str] = [*CORPUS[:12], *(document.doc_id for document in CORPUS[12:24])]
    request = Request(k=5, where="topic >= 1")
    with Index.open(folder, encoder=FakeEncoder()) as index:
        expected = [answer(index.search(query, request)) for query in queries]
    with Index.open(folder, encoder=FakeEncoder()) as index, ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(lambda query: answer(index.search(query, request)), queries * 3))
    assert found == expected * 3


@pytest.mark.parametrize("n_partitions", [1, P])
def test_documents_get_vectors_once_while_others_search(
    tmp_path: Path, n_partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_first_vectors(monkeypatch)
    folder, encoder = tmp_path / "x.lm", FakeEncoder()
    build(folder, CORPUS, encoder=encoder, encode="later")
    if n_partitions > 1:
        partition(folder, tmp_path / "x.parts", n_partitions)
        folder = tmp_path / "x.parts"
    with Index.open(folder, encoder=encoder, store=False) as index, ThreadPoolExecutor(THREADS) as threads:
        before = len(encoder.encoded)
        names = [document.doc_id for document in CORPUS[:16]]
        list(threads.map(lambda name: answer(index.search(name, Request(candidates=N))), names))
        assert len(encoder.encoded) - before == N - 8 and index.snapshot.is_complete
        together = answer(index.search(names[0], Request(k=N)))
    with Index.open(folder, encoder=FakeEncoder(), store=False) as index:
        assert answer(index.search(names[0], Request(k=N, candidates=N))) == together
