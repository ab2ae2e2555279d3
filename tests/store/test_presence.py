"""Documents that are looked up by name while a writer is open."""

from __future__ import annotations

from pathlib import Path

from engine.store.documents import content_hash
from engine.store.presence import stored_hashes
from engine.store.seal import is_sealed
from engine.store.writer import Writer
from tests.fakes import FakeEncoder, make_document


def test_documents_are_there_once_they_are_committed(tmp_path: Path) -> None:
    fox, dog = make_document("fox", "a fox"), make_document("dog", "a dog")
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f", "width": 32})
        assert stored_hashes(writer.folder, ["fox", "dog"]) == {}
        writer.commit(list(zip([fox], FakeEncoder().encode([fox]), strict=True)))
        assert stored_hashes(writer.folder, ["fox", "dog"]) == {"fox": content_hash(fox)}
        writer.commit(list(zip([dog], FakeEncoder().encode([dog]), strict=True)))
        assert stored_hashes(writer.folder, ["dog", "fox"]) == {"fox": content_hash(fox), "dog": content_hash(dog)}
        assert stored_hashes(writer.folder, []) == {}
    assert is_sealed(tmp_path / "x.lm" / "catalog.sqlite")
