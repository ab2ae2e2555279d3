"""Postings of words over many documents without vectors: they choose candidates, and are kept like other files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import indexer.generation.generations as generation_module
from engine.index import Index
from engine.result import Status
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.views import Result
from engine.words.counts import PackedWords
from indexer.building.builder import build
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage, verify
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus

N = 60
CANDIDATES = 20


@pytest.fixture(autouse=True)
def few_documents_count_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_module, "MANY_WITHOUT_VECTORS", 30)
    monkeypatch.setattr("engine.search.candidates.SCAN_BELOW_DOCUMENTS", 30)
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, CANDIDATES),))


@pytest.fixture
def corpus() -> list[Document]:
    return make_corpus(N)


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many documents' term counts were read, call by call."""
    read: list[int] = []
    true = IndexSnapshot.packed_words

    def counted(
        self: IndexSnapshot, positions: NDArray[np.int64], *, apart: bool = False
    ) -> tuple[NDArray[np.int64], PackedWords]:
        read.append(len(positions))
        return true(self, positions, apart=apart)

    monkeypatch.setattr(IndexSnapshot, "packed_words", counted)
    return read


def ranks(result: Result) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in result.hits]


def postings_file(folder: Path) -> Path | None:
    with IndexSnapshot(folder) as snapshot:
        row = snapshot.word_postings_row
        return None if row is None else folder / row.file


@pytest.mark.parametrize("encode", ["none", "later"])
def test_a_query_reads_the_counts_of_few_documents_and_finds_the_same(
    tmp_path: Path, corpus: list[Document], encode: str, n_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_first_vectors(monkeypatch)
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), encode=encode)  # type: ignore[arg-type]
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        query = index.stored_query("doc003")
        n_encoded = int(np.count_nonzero(index.snapshot.has_vectors))
        searcher = index.searcher()
        whole = searcher.search(query, Request(k=5, exact=True))
        n_read.clear()
        found = searcher.search(query, Request(k=5))
    assert (n_encoded > 0) is (encode == "later")
    assert found.status is Status.ESTIMATED
    assert ranks(found) == ranks(whole)
    assert sum(n_read) <= CANDIDATES + n_encoded < N


def test_a_filter_that_leaves_few_documents_scans_them(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        assert index.search("doc003", Request(where="family = 'even'", exact=False)).status is Status.CERTIFIED
        assert index.search("doc003").status is Status.ESTIMATED


def test_documents_that_came_later_are_scored_exactly(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:50], encode="none")
    first = postings_file(tmp_path / "x.lm")
    build(tmp_path / "x.lm", corpus, encode="none")
    assert postings_file(tmp_path / "x.lm") == first is not None
    late = {f"doc{number:03d}" for number in range(50, N)}
    with Index.open(tmp_path / "x.lm") as index:
        found, everything = (index.search("doc003", Request(k=10, exact=exact)) for exact in (False, True))
    scores = [{name: score for name, score in ranks(result) if name in late} for result in (found, everything)]
    assert len(scores[0]) >= 1 and scores[0].items() >= scores[1].items()


@pytest.mark.slow
def test_postings_are_built_again_when_documents_outgrew_them(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "x.lm", corpus[:40], encode="none")
    first = postings_file(tmp_path / "x.lm")
    monkeypatch.setattr(generation_module, "FRESH_CHUNKS", 10)
    monkeypatch.setattr(generation_module, "FRESH_MOST", 10)
    build(tmp_path / "x.lm", corpus, encode="none")
    second = postings_file(tmp_path / "x.lm")
    assert first is not None and second is not None
    assert first != second and not first.exists() and second.exists()


def test_postings_are_deleted_when_all_documents_have_vectors(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encode="none")
    assert postings_file(tmp_path / "x.lm") is not None
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    assert postings_file(tmp_path / "x.lm") is None
    assert not list((tmp_path / "x.lm" / "ann").glob("words/*"))


@pytest.mark.slow
def test_damaged_postings_are_found_and_built_again(
    tmp_path: Path, corpus: list[Document], flip_byte: Callable[[Path, int], None]
) -> None:
    folder = tmp_path / "x.lm"
    build(folder, corpus, encode="none")
    with Index.open(folder) as index:
        before = ranks(index.search("doc003"))
    file = postings_file(folder)
    assert file is not None
    flip_byte(file, -1)
    assert [(finding.damage, finding.where) for finding in verify(folder)] == [
        (Damage.GENERATION, file.relative_to(folder).as_posix())
    ]
    repair(folder)
    assert verify(folder) == []
    with Index.open(folder) as index:
        assert ranks(index.search("doc003")) == before
