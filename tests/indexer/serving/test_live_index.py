"""A served index follows the commits to its folder, and keeps the old snapshot where the new one is damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.index import Index
from engine.search.request import Request
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation import reference
from indexer.serving.answers import Refusal
from indexer.serving.live_index import LiveIndex
from indexer.serving.settings import ServerSettings
from indexer.upkeep.repair import remove as take_out
from tests.fakes import FakeEncoder, make_corpus

SETTINGS = ServerSettings(threads=2)


@pytest.fixture
def folder(built_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_folder, tmp_path / "copy.lm"))


def opened(folder: Path, encoder: FakeEncoder | None = None) -> LiveIndex:
    live = LiveIndex(folder, SETTINGS, encoder or FakeEncoder())
    live.load()
    return live


def remove(folder: Path, doc_id: str) -> None:
    with Writer(folder) as writer:
        writer.remove([one.id for one in writer.indexed([doc_id]).values()])


def test_a_commit_is_seen_by_the_next_request_and_not_by_a_running_one(folder: Path) -> None:
    live = opened(folder)
    with live.lease() as before:
        assert not live.reload()
        remove(folder, "doc003")
        assert live.reload() and live.n_documents == 59
        assert before.n_documents == 60 and before.document("doc003").doc_id == "doc003"
    with live.lease() as after:
        assert after.n_documents == 59
    live.close()


@pytest.mark.slow
def test_a_commit_to_a_partition_and_another_reference_are_seen(folder: Path) -> None:
    parts = folder.with_name("x.parts")
    partition(folder, parts, 2)
    live = opened(parts)
    assert not live.reload()
    take_out(parts, ["doc003"])
    assert live.reload() and live.n_documents == 59
    reference.rebase(parts)
    assert live.reload()
    with live.lease() as index:
        assert index.snapshot.reference.version == 2
        assert [hit.doc_id for hit in index.search("doc004", Request(k=59))].count("doc003") == 0
    assert not live.reload()
    live.close()


def test_another_folder_in_the_same_place_is_seen(folder: Path) -> None:
    live = opened(folder)
    shutil.rmtree(folder)
    build(folder, make_corpus(4), encoder=FakeEncoder(), factory="Flat")
    assert live.reload() and live.n_documents == 4
    live.close()


def test_a_damaged_index_leaves_the_old_snapshot(folder: Path) -> None:
    live = opened(folder)
    remove(folder, "doc003")
    catalog = folder / "catalog.sqlite"
    content = catalog.read_bytes()
    catalog.write_bytes(b"damaged" * 1000)
    assert not live.reload()
    with live.lease() as index:
        assert index.n_documents == 60
    catalog.write_bytes(content)
    assert live.reload() and live.n_documents == 59
    live.close()


def n_encoded(folder: Path) -> int:
    with Index.open(folder) as index:
        return int(index.snapshot.has_vectors.sum())


def test_vectors_of_requests_are_shared(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "FIRST_DOCUMENTS", 8)
    monkeypatch.setattr(reference, "FEWEST_FIRST", 4)
    monkeypatch.setattr(reference, "ALL_TOKENS", 0)
    folder, encoder = tmp_path / "later.lm", FakeEncoder()
    build(folder, corpus, encoder=encoder, encode="later")
    n_stored = n_encoded(folder)
    live = opened(folder, encoder)
    query = Document.from_text(corpus[7].text)
    with live.lease() as first:
        result = first.search(query, Request(k=3))
    n_before = len(encoder.encoded)
    with live.lease() as second:
        assert second is first
        again = second.search(query, Request(k=3))
    assert [(hit.doc_id, hit.score) for hit in again] == [(hit.doc_id, hit.score) for hit in result]
    assert result.encoding is not None and result.encoding.n_encoded_now > 0
    assert len(encoder.encoded) == n_before + 1  # the query
    assert n_encoded(folder) == n_stored == 8
    live.close()


def test_an_index_of_words_alone_needs_no_encoder(tmp_path: Path, corpus: list[Document]) -> None:
    folder = tmp_path / "words.lm"
    build(folder, corpus, encode="none")
    live = LiveIndex(folder, SETTINGS)
    live.load()
    with live.lease() as index:
        assert len(index.search(Document.from_text(corpus[7].text))) == 10
    live.close()


def test_an_index_that_is_not_loaded_or_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    live = LiveIndex(folder, SETTINGS, FakeEncoder())
    with pytest.raises(Refusal, match="is being loaded"), live.lease():
        pass
    live.close()
    with pytest.raises(IndexMismatch, match="holds no index"):
        LiveIndex(tmp_path, SETTINGS)
