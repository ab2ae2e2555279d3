"""A score depends on query, document and reference alone: not on k, page, filter, index type, threads or additions.

The index holds 1,300 documents as coarse codes in lists, of which few are searched.
"""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import faiss
import pytest
from threadpoolctl import threadpool_limits

import engine.search.candidates as neighbours_module
from engine.index import Index
from engine.result import Status
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.reference import rebase
from tests.fakes import FakeEncoder, make_corpus, make_document

QUERIES = [f"doc{number:03d}" for number in (3, 77, 1250)]


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    """Every hundredth document has a copy."""
    documents = make_corpus(1_300)
    copies = [replace(one, doc_id=f"copy-of-{one.doc_id}") for one in documents[::100]]
    return [*documents, *copies]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("stable") / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF64,PQ8x4fs", recall_floor=0.1)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    with Index.open(folder, encoder=FakeEncoder()) as opened:
        opened.snapshot.generation.ann.nprobe = 1
        yield opened


def ranked(index: Index, doc_id: str, k: int, offset: int = 0, **options: object) -> list[tuple[str, float]]:
    result = index.search(doc_id, Request.of(k=k, offset=offset, **options))  # type: ignore[arg-type]
    return [(hit.doc_id, hit.score) for hit in result.hits]


@pytest.mark.slow
@pytest.mark.parametrize("doc_id", QUERIES)
def test_ranks_do_not_depend_on_k_or_page(index: Index, doc_id: str) -> None:
    whole = ranked(index, doc_id, 600)
    assert index.search(doc_id).status is Status.ESTIMATED
    for k in (10, 100, 200, 201, 400):
        assert ranked(index, doc_id, k) == whole[:k]
    pages = [ranked(index, doc_id, 10, offset) for offset in range(0, 200, 10)]
    assert [hit for page in pages for hit in page] == whole[:200]
    assert len({name for name, _ in whole}) == len(whole)


@pytest.mark.slow
@pytest.mark.parametrize("doc_id", QUERIES)
def test_scores_are_those_of_a_scan(index: Index, doc_id: str) -> None:
    exact = dict(ranked(index, doc_id, 2_000, exact=True))
    for name, score in ranked(index, doc_id, 600):
        assert score == exact[name]


@pytest.mark.slow
@pytest.mark.parametrize("doc_id", QUERIES)
@pytest.mark.parametrize("where", ["family = 'even'", "year >= 2020", "topic = 3"])
def test_a_filter_changes_no_score(index: Index, doc_id: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = dict(ranked(index, doc_id, 2_000, exact=True))
    scanned = ranked(index, doc_id, 100, where=where)
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_CHUNKS", 0)
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_SHARE", 0.0)
    for name, score in [*scanned, *ranked(index, doc_id, 100, where=where)]:
        assert score == everything[name]


@pytest.mark.slow
@pytest.mark.parametrize("doc_id", QUERIES)
def test_threads_change_no_digit(index: Index, doc_id: str) -> None:
    rankings = []
    for n_threads in (1, 2):
        faiss.omp_set_num_threads(n_threads)
        with threadpool_limits(n_threads):
            rankings.append([ranked(index, doc_id, 200), ranked(index, doc_id, 200, exact=True)])
    assert rankings[0] == rankings[1]


def test_documents_of_equal_score_are_ordered_by_id(index: Index) -> None:
    hits = ranked(index, "doc003", 2_000, exact=True)
    scores = dict(hits)
    copies = [name for name in scores if name.startswith("copy-of-")]
    assert len(copies) == 13
    assert all(scores[name] == scores[name.removeprefix("copy-of-")] for name in copies)
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.slow
def test_added_documents_change_no_score_until_the_reference_is_drawn_again(
    tmp_path: Path, folder: Path, index: Index, corpus: list[Document]
) -> None:
    before = {doc_id: dict(ranked(index, doc_id, 2_000, exact=True)) for doc_id in QUERIES}
    grown = tmp_path / "x.lm"
    shutil.copytree(folder, grown)
    added = [make_document(f"new-{one.doc_id}", one.text) for one in make_corpus(250, seed=9)]
    build(grown, [*corpus, *added], encoder=FakeEncoder(), recall_floor=0.1)
    with Index.open(grown, encoder=FakeEncoder()) as opened:
        assert opened.n_documents == len(corpus) + 250
        for doc_id in QUERIES:
            after = dict(ranked(opened, doc_id, 2_000, exact=True))
            assert {name: after[name] for name in before[doc_id]} == before[doc_id]
        assert opened.search(QUERIES[0]).reference == 1
    rebase(grown)
    with Index.open(grown, encoder=FakeEncoder()) as opened:
        assert opened.search(QUERIES[0]).reference == 2
        assert dict(ranked(opened, QUERIES[0], 2_000, exact=True)) != before[QUERIES[0]]
