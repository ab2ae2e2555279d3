"""Several threads search one opened index, also while documents get vectors, and find what one thread finds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.index import Index
from engine.result import Result
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation import reference
from tests.fakes import FakeEncoder, make_corpus

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
    monkeypatch.setattr(reference, "FIRST_DOCUMENTS", 8)
    monkeypatch.setattr(reference, "FEWEST_FIRST", 4)
    monkeypatch.setattr(reference, "ALL_TOKENS", 0)
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
