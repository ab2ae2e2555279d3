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
    """Of 60 real documents, and published."""
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
    told = additions.add(Real(real_folder, 60, 0), folder, 70)
    with Snapshot(folder) as snapshot:
        n_chunks = snapshot.chunk_counts()
        assert set(snapshot.doc_ids()) == {*before, *told["names"]}
    assert len(told["names"]) == 70 and not set(told["names"]) & set(before)
    assert all(COPY_MARK in name for name in told["names"]) and told["seconds"] > 0
    assert told["n_chunks"] == sum(n_chunks[name] for name in told["names"])
    assert additions.find(folder, told["names"][:5])["n_found"] == 5


def test_what_was_grown_from_something_else_is_left_alone(real_folder: Path, folder: Path) -> None:
    with pytest.raises(IndexMismatch, match="not from"):
        additions.add(Real(real_folder, 30, 0), folder, 5)


def test_few_documents_are_left_to_be_scanned(real_folder: Path, folder: Path) -> None:
    additions.add(Real(real_folder, 60, 0), folder, 10)
    told = additions.join(folder, AUTO, None, 0.0)
    assert told["outcome"] == "scanned" and additions.generation(folder)["n_vectors"] < _n_chunks(folder)


@pytest.mark.parametrize(("n_documents", "outcome"), [(10, "joined"), (200, "built anew")])
def test_more_documents_join_and_very_many_have_all_built_anew(
    real_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, n_documents: int, outcome: str
) -> None:
    monkeypatch.setattr("indexer.generation.new_generation.FRESH_CHUNKS", 5)
    additions.add(Real(real_folder, 60, 0), folder, n_documents)
    told = additions.join(folder, AUTO, None, 0.0)
    assert told["outcome"] == outcome and told["seconds"] > 0
    assert additions.generation(folder)["n_vectors"] == _n_chunks(folder)


def test_real_documents_are_encoded_by_the_encoder_of_their_index(
    real_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("engine.encoders.loading.load_encoder", lambda name: asked.append(name) or FakeEncoder())
    told = additions.encode(Real(real_folder, 60, 0), 3)
    assert asked == ["made"] and told["n_chunks"] >= 3 and told["seconds"] > 0


def _n_chunks(folder: Path) -> int:
    with Snapshot(folder) as snapshot:
        return snapshot.n_chunks
