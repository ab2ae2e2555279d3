"""What `repair` repairs, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import IndexDamaged, IndexMismatch
from engine.index import Index
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
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
        return [(hit.doc_id, hit.score) for hit in index.search(doc_id).hits]


def test_shards_without_their_catalog_stay(folder: Path) -> None:
    catalog, shards = folder / "catalog.sqlite", sorted((folder / "shards").iterdir())
    catalog.unlink()
    with pytest.raises(IndexMismatch, match="holds no index"):
        verify(folder)
    for content in (None, b""):
        if content is not None:
            catalog.write_bytes(content)
        with pytest.raises(IndexDamaged, match="would delete shards of committed documents"):
            Writer(folder)
    assert sorted((folder / "shards").iterdir()) == shards


@pytest.mark.slow
def test_a_generation_published_under_a_lower_floor_is_rebuilt(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 10),))  # else all are candidates, and none is missed
    folder = tmp_path / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,PQ2x4fs", recall_floor=0.0)
    with IndexSnapshot(folder) as snapshot:
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
