"""What `repair` repairs, and what it refuses."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import IndexDamaged
from engine.index import Index
from engine.store.snapshot import Snapshot
from engine.text.document import Document
from indexer import build, repair, verify
from indexer.upkeep.verify import Damage
from tests.fakes import FakeEncoder


@pytest.fixture
def folder(tmp_path: Path, corpus: list[Document]) -> Path:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="Flat")
    return tmp_path / "x.lm"


def found(folder: Path) -> list[tuple[Damage, str]]:
    return [(finding.damage, finding.where) for finding in verify(folder)]


def ranked(folder: Path, doc_id: str = "doc003") -> list[tuple[str, float]]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return [(hit.doc_id, hit.score) for hit in index.search_id(doc_id).hits]


def test_a_lost_seal_is_written_again(folder: Path) -> None:
    before = ranked(folder)
    (folder / "catalog.sqlite.seal").unlink()
    assert found(folder) == [(Damage.SEAL, "catalog.sqlite.seal")]
    assert repair(folder).mended == ["catalog.sqlite.seal: every page and text was checked; sealed again"]
    assert (found(folder), ranked(folder)) == ([], before)


def test_a_readable_catalog_that_differs_from_its_seal_is_refused(folder: Path) -> None:
    """A bit of a name, a row number or a filter's value is under no checksum but the seal's."""
    path = folder / "catalog.sqlite"
    path.write_bytes(path.read_bytes().replace(b"doc059", b"doc259"))  # the last name, so that the index stays sorted
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (Damage.CATALOG, "catalog.sqlite") in found(folder)
    with pytest.raises(IndexDamaged, match="damaged beyond repair"):
        repair(folder)


def test_a_missing_catalog_is_found_and_repair_is_refused(folder: Path) -> None:
    (folder / "catalog.sqlite").unlink()
    assert (Damage.CATALOG, "catalog.sqlite") in found(folder)
    with pytest.raises(IndexDamaged, match="restore a copy"):
        repair(folder)


@pytest.mark.slow
def test_a_generation_published_under_a_lower_floor_is_rebuilt(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "engine.search.local_partition.TIERS", ((10, 10),)
    )  # else all are candidates, and none is missed
    folder = tmp_path / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,PQ2x4fs", recall_floor=0.0)
    with Snapshot(folder) as snapshot:
        assert snapshot.generation_row.recall < 0.95
    before = ranked(folder)
    next(folder.glob("ann/*/*.faiss")).write_bytes(b"")
    assert repair(folder).mended == ["ann/000001/chunks.faiss: rebuilt from the shards"]
    assert (found(folder), ranked(folder)) == ([], before)


def test_a_damaged_shard_costs_its_documents_unless_they_are_encoded_again(
    folder: Path, flip_byte: Callable[[Path, int], None], corpus: list[Document]
) -> None:
    before = ranked(folder)
    flip_byte(folder / "shards" / "000001.safetensors", -1)
    report = repair(folder, encode=True, encoder=FakeEncoder())
    assert (report.lost, sorted(report.reencoded)) == ([], sorted(document.doc_id for document in corpus))
    assert [name for name, _ in ranked(folder)] == [name for name, _ in before]
    flip_byte(next((folder / "shards").iterdir()), -1)
    assert sorted(repair(folder).lost) == sorted(document.doc_id for document in corpus)
    assert found(folder) == []
