"""`verify --deep` finds content that was stored wrongly, and nothing in a sound index."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.errors import IndexMismatch
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.cli import main
from indexer.upkeep.verify import Damage, verify, verify_deep
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_a_sound_index_has_no_finding_by_its_own_encoder_or_in_partitions(
    built_folder: Path, corpus: list[Document], tmp_path: Path
) -> None:
    assert verify_deep(built_folder, sample=len(corpus), encoder=FakeEncoder()) == []
    with pytest.raises(IndexMismatch):
        verify_deep(built_folder, encoder=FakeEncoder(fingerprint="e" * 32))
    partition(built_folder, tmp_path / "x.parts", 3)
    encoder = FakeEncoder()
    assert verify_deep(tmp_path / "x.parts", sample=7, encoder=encoder) == []
    assert len(encoder.encoded) == 7


def test_words_and_vectors_of_another_text_are_found(tmp_path: Path) -> None:
    encoder, folder = FakeEncoder(), tmp_path / "x.lm"
    first, second, third = make_corpus(3)
    other = make_document(second.doc_id, [("part one", "nothing of this was ever in the document")])
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        encoded = encoder.encode([first, other, third])
        writer.set_language("english")
        writer.commit(
            list(zip([first, second, third], encoded, strict=True)), writer.count_words([first, other, third])
        )
    assert verify(folder) == []
    found = verify_deep(folder, encoder=FakeEncoder())
    assert [(one.damage, one.where) for one in found] == [(Damage.CONTENT, second.doc_id)] * 2
    assert found[0].what == "its term counts are not those of its text; remove it, then index it again"
    assert "chunks are not the" in found[1].what


def test_vectors_of_other_parameters_are_found(tmp_path: Path) -> None:
    class Other(FakeEncoder):
        def _sum(self, text: str) -> object:  # type: ignore[override]
            return super()._sum(text[::-1])

    build(tmp_path / "x.lm", make_corpus(2), encoder=Other())
    assert {one.where for one in verify_deep(tmp_path / "x.lm", encoder=FakeEncoder())} == {"doc000", "doc001"}


def test_the_command_checks_words_without_an_encoder(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", make_corpus(4), encode="none", language="english")
    done = CliRunner().invoke(main, ["upkeep", "verify", str(tmp_path / "x.lm"), "--deep", "--sample", "2"])
    assert (done.exit_code, done.output) == (0, "no damage found\n")
