from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.speed.growth import additions
from benchmarks.speed.growth.folder import Real, grow, publish, recipe_path
from benchmarks.speed.growth.source import COPY_MARK
from engine.errors import IndexMismatch
from engine.store.ann import AUTO
from engine.store.snapshot import Snapshot
from tests.fakes import FakeEncoder


@pytest.fixture(scope="module")
def grown(real_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that was grown from 60 real documents, and published."""
    folder = tmp_path_factory.mktemp("grown") / "grown.lm"
    grow(Real(real_folder, 60, 0), folder, 400)
    publish(folder, AUTO, None, 0.0)
    return folder


@pytest.fixture
def folder(grown: Path, tmp_path: Path) -> Path:
    copied = Path(shutil.copytree(grown, tmp_path / "grown.lm"))
    shutil.copy(recipe_path(grown), recipe_path(copied))
    return copied


def test_the_next_documents_of_the_stream_are_added(real_folder: Path, folder: Path) -> None:
    with Snapshot(folder) as snapshot:
        before = snapshot.doc_ids()
    added = additions.add(Real(real_folder, 60, 0), folder, 70)
    with Snapshot(folder) as snapshot:
        n_chunks = snapshot.chunk_counts()
        assert set(snapshot.doc_ids()) == {*before, *added["names"]}
    assert len(added["names"]) == 70 and not set(added["names"]) & set(before)
    assert all(COPY_MARK in name for name in added["names"]) and added["seconds"] > 0
    assert added["n_chunks"] == sum(n_chunks[name] for name in added["names"])
    assert additions.find(folder, added["names"][:5])["n_found"] == 5


def test_an_index_grown_from_another_source_is_refused(real_folder: Path, folder: Path) -> None:
    with pytest.raises(IndexMismatch, match="not from"):
        additions.add(Real(real_folder, 30, 0), folder, 5)


def test_few_documents_are_left_to_be_scanned(real_folder: Path, folder: Path) -> None:
    additions.add(Real(real_folder, 60, 0), folder, 10)
    joined = additions.join(folder, AUTO, None, 0.0)
    assert joined["outcome"] == "scanned" and additions.generation(folder)["n_vectors"] < _n_chunks(folder)


@pytest.mark.parametrize(("n_documents", "outcome"), [(10, "joined"), (200, "built anew")])
def test_more_documents_join_the_generation_and_very_many_have_it_rebuilt(
    real_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, n_documents: int, outcome: str
) -> None:
    monkeypatch.setattr("indexer.generation.new_generation.FRESH_CHUNKS", 5)
    additions.add(Real(real_folder, 60, 0), folder, n_documents)
    joined = additions.join(folder, AUTO, None, 0.0)
    assert joined["outcome"] == outcome and joined["seconds"] > 0
    assert additions.generation(folder)["n_vectors"] == _n_chunks(folder)


def test_real_documents_are_encoded_by_the_encoder_of_their_index(
    real_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr("engine.encoders.loading.load_encoder", lambda name: loaded.append(name) or FakeEncoder())
    encoded = additions.encode(Real(real_folder, 60, 0), 3)
    assert loaded == ["made"] and encoded["n_chunks"] >= 3 and encoded["seconds"] > 0


def _n_chunks(folder: Path) -> int:
    with Snapshot(folder) as snapshot:
        return snapshot.n_chunks
