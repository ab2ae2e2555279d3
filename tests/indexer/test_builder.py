"""`build` makes and updates an index, and refuses what cannot be built before it reads a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BudgetExceeded, EngineError, IndexBusy, IndexMismatch, RecallTooLow
from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.resources import folder_bytes
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_document


def test_an_index_is_built_and_can_be_searched(tmp_path: Path, corpus: list[Document]) -> None:
    report = build(str(tmp_path / "deep" / "x.lm"), iter(corpus), encoder=FakeEncoder())
    assert report.n_added == 60
    with Index.open(tmp_path / "deep" / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(corpus[7], Request(with_itself=True)).hits[0].doc_id == "doc007"
        assert index.snapshot.meta["encoder"] == {"name": "fake", "fingerprint": "f" * 32, "width": 32}


def test_a_second_run_keeps_the_generation(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    before = (tmp_path / "x.lm" / "ann" / "000001" / "chunks.faiss").stat().st_mtime_ns
    build(tmp_path / "x.lm", [*corpus, make_document("new", "fresh words")], encoder=FakeEncoder())
    assert (tmp_path / "x.lm" / "ann" / "000001" / "chunks.faiss").stat().st_mtime_ns == before
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(make_document("q", "fresh words")).hits[0].doc_id == "new"


def test_the_encoder_of_the_index_is_used_again(tmp_path: Path, bert_folder: Path) -> None:
    build(tmp_path / "x.lm", [make_document("a", "old fox")], encoder=str(bert_folder), device="cpu")
    build(tmp_path / "x.lm", [make_document("b", "young dog")], device="cpu")
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.doc_ids() == ["a", "b"]
        assert snapshot.meta["encoder"]["name"] == str(bert_folder)


def test_another_encoder_is_refused_before_anything_is_encoded(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:3], encoder=FakeEncoder())
    other = FakeEncoder(name="other", fingerprint="0" * 32)
    with pytest.raises(IndexMismatch, match="pass --encoder fake"):
        build(tmp_path / "x.lm", corpus, encoder=other)
    assert other.encoded == []


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"factory": "Nonsense"}, IndexMismatch, "FAISS cannot build factory 'Nonsense' over vectors 32 wide"),
        ({"memory_bytes": 1_000_000}, BudgetExceeded, r"--memory allows 1 MB: allow at least \d+M"),
    ],
    ids=["factory", "memory"],
)
def test_settings_that_cannot_be_kept_are_refused_before_anything_is_read(
    tmp_path: Path, settings: dict[str, Any], error: type[EngineError], message: str
) -> None:
    def unread() -> Iterator[Document]:
        pytest.fail("it was read")
        yield

    with pytest.raises(error, match=message):
        build(tmp_path / "x.lm", unread(), encoder=FakeEncoder(), **settings)


def test_scan_makes_no_generation(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="scan")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.snapshot.generation is None
        assert index.search(corpus[3], Request(with_itself=True)).hits[0].doc_id == corpus[3].doc_id


@pytest.mark.slow
def test_documents_stay_when_the_generation_is_refused(tmp_path: Path, corpus: list[Document]) -> None:
    with pytest.raises(RecallTooLow):
        build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=1.5)
    assert not verify(tmp_path / "x.lm")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.snapshot.generation is None
        assert index.search(corpus[7], Request(with_itself=True)).hits[0].doc_id == "doc007"


def test_a_busy_index_is_refused(tmp_path: Path, corpus: list[Document]) -> None:
    with Writer(tmp_path / "x.lm"), pytest.raises(IndexBusy):
        build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())


def test_an_empty_corpus_makes_an_empty_index(tmp_path: Path) -> None:
    assert build(tmp_path / "x.lm", [], encoder=FakeEncoder()).n_seen == 0
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(make_document("q", "any words")).hits == ()
        assert index.document_vectors()[0] == []


def test_the_report_has_memory_disk_and_time(tmp_path: Path, corpus: list[Document]) -> None:
    report = build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    assert report.disk_bytes == folder_bytes(tmp_path / "x.lm") > 0
    assert 50_000_000 < report.peak_memory_bytes < 10_000_000_000
    assert report.generation_seconds > 0


def test_a_disk_budget_is_kept_and_what_was_committed_can_be_found(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:20], encoder=FakeEncoder())
    limit = folder_bytes(tmp_path / "x.lm") + 20_000
    with pytest.raises(BudgetExceeded, match="make room and run the same command again"):
        build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), disk_bytes=limit)
    assert folder_bytes(tmp_path / "x.lm") <= limit
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(corpus[7], Request(with_itself=True)).hits[0].doc_id == "doc007"
