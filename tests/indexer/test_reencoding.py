"""Vectors of another encoder replace the old ones all at once, and no document is encoded twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import indexer.building.pipeline as pipeline_module
import indexer.building.rewriting as reencoding_module
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from indexer.building.builder import build
from indexer.building.rewriting import partition, reencode, reencoding_cost
from indexer.cli import main
from indexer.generation.generations import compact
from indexer.upkeep.repair import remove
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_corpus, make_document

CORPUS = make_corpus(12)
OTHER = "0" * 32


def other(**options: list[str]) -> FakeEncoder:
    return FakeEncoder(name="other", width=24, fingerprint=OTHER, **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with a generation; batches are single documents."""
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), factory="Flat", language="english")
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", 1)
    return tmp_path / "x.lm"


def hits(folder: Path, encoder: FakeEncoder) -> list[list[tuple[str, float]]]:
    with Index.open(folder, encoder=encoder) as index:
        return [[(hit.doc_id, hit.score) for hit in index.search(one.doc_id, Request(k=12)).hits] for one in CORPUS]


def test_a_reencoded_index_equals_one_built_by_the_other_encoder(folder: Path, tmp_path: Path) -> None:
    encoder = other()
    report = reencode(folder, encoder=encoder)
    assert (report.n_encoded, sorted(encoder.encoded)) == (12, [one.doc_id for one in CORPUS])
    build(tmp_path / "new.lm", CORPUS, encoder=other(), factory="Flat", language="english")
    assert hits(folder, other()) == hits(tmp_path / "new.lm", other())
    assert verify(folder) == []
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.meta["encoder"] == {"name": "other", "fingerprint": OTHER, "width": 24}
        assert snapshot.generation is not None and snapshot.generation.through_chunk >= snapshot.n_chunks
        assert snapshot.reference_row is not None


def test_a_stopped_run_leaves_the_old_vectors_and_continues(folder: Path) -> None:
    before = hits(folder, FakeEncoder())
    stopped = other(breaks_on=["doc007"])
    with pytest.raises(RuntimeError, match="doc007"):
        reencode(folder, encoder=stopped)
    assert stopped.encoded == [f"doc{number:03d}" for number in range(7)]
    assert hits(folder, FakeEncoder()) == before
    assert verify(folder) == []
    cost = reencoding_cost(folder, other())
    assert (cost.n_documents, cost.n_staged) == (5, 7)
    encoder = other()
    reencode(folder, encoder=encoder)
    assert encoder.encoded == [f"doc{number:03d}" for number in range(7, 12)]
    assert len(hits(folder, other())[0]) == 11


@pytest.mark.slow
def test_documents_that_change_between_two_runs_are_encoded_by_the_second(folder: Path) -> None:
    with pytest.raises(RuntimeError):
        reencode(folder, encoder=other(breaks_on=["doc009"]))
    remove(folder, ["doc001"])
    changed, added = make_document("doc002", "another text of words"), make_document("new", "a new text of words")
    build(folder, [changed, added], encoder=FakeEncoder(), factory="Flat")
    compact(folder)
    encoder = other()
    reencode(folder, encoder=encoder)
    assert sorted(encoder.encoded) == ["doc002", "doc009", "doc010", "doc011", "new"]
    with IndexSnapshot(folder) as snapshot:
        documents = [document for document, _ in snapshot.documents(np.arange(snapshot.n_documents))]
        expected = np.concatenate([one.chunks for one in other().encode(documents)]).astype(np.float16)
        assert np.array_equal(snapshot.chunk_rows(np.arange(len(documents)))[0], expected)


def test_documents_without_vectors_stay_without_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "x.lm"
    build(folder, CORPUS[:6], encoder=FakeEncoder(), factory="Flat", language="english")
    with Writer(folder) as writer:
        writer.commit([(CORPUS[7], EncodedDocument.unencoded(32, 40))])
    encoder = other()
    reencode(folder, encoder=encoder)
    assert "doc007" not in encoder.encoded
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.has_vectors.tolist() == [True] * 6 + [False]
        words = snapshot.words(np.array([6]))
    build(tmp_path / "new.lm", [CORPUS[7]], encode="none", language="english")
    with IndexSnapshot(tmp_path / "new.lm") as snapshot:
        assert np.array_equal(snapshot.words(np.array([0])).words.terms, words.words.terms)
    build(folder, [], encoder=other())
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.is_complete


@pytest.mark.slow
@pytest.mark.parametrize("is_same_command", [True, False])
def test_a_run_that_is_stopped_after_the_switch_is_finished_by_the_next(
    is_same_command: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise RuntimeError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(reencoding_module, "refresh_reference", stop)
        with pytest.raises(RuntimeError, match="stopped"):
            reencode(folder, encoder=other())
    assert len(hits(folder, other())[0]) == 11
    if is_same_command:
        assert reencode(folder, encoder=other()).n_encoded == 0
    else:
        build(folder, [], encoder=other())
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.generation_row is not None and snapshot.reference_row is not None
        assert snapshot.generation_row.factory == "Flat"


def test_a_reader_keeps_the_vectors_that_it_opened(folder: Path) -> None:
    before = hits(folder, FakeEncoder())
    with Index.open(folder, encoder=FakeEncoder()) as index:
        reencode(folder, encoder=other())
        found = [[(hit.doc_id, hit.score) for hit in index.search(one.doc_id, Request(k=12)).hits] for one in CORPUS]
    assert found == before


def test_reencoding_by_the_encoder_of_the_index_drops_shards_that_another_began(folder: Path) -> None:
    n_shards = len(list((folder / "shards").iterdir()))
    with pytest.raises(RuntimeError):
        reencode(folder, encoder=other(breaks_on=["doc005"]))
    assert len(list((folder / "shards").iterdir())) == n_shards + 5
    lines: list[str] = []
    assert reencode(folder, encoder=FakeEncoder(), log=lines.append).n_encoded == 0
    assert lines == [
        "dropped 5 shards that another encoder had begun",
        f"{folder} has the vectors of this encoder already",
    ]
    assert len(list((folder / "shards").iterdir())) == n_shards


def test_an_index_that_cannot_be_reencoded_is_refused_with_the_reason(folder: Path, tmp_path: Path) -> None:
    build(tmp_path / "words.lm", CORPUS, encode="none")
    with pytest.raises(IndexMismatch, match=r"holds words alone; add vectors: longmatch index .*words\.lm"):
        reencode(tmp_path / "words.lm", encoder=other())
    partition(folder, tmp_path / "x.parts", 2)
    with pytest.raises(IndexMismatch, match="is partitioned"):
        reencode(tmp_path / "x.parts", encoder=other())
    with pytest.raises(IndexMismatch, match="is a partition"):
        reencode(tmp_path / "x.parts" / "0000.lm", encoder=other())


def test_the_command_prints_the_cost_and_reencodes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.encoders.loading.load_encoder", lambda *_, **__: other())
    n_tokens = sum(one.coverage.tokens_total for one in FakeEncoder().encode(CORPUS))
    refused = CliRunner().invoke(main, ["index", str(folder), "--encoder", "other"])
    assert refused.exit_code == 1 and "Traceback" not in refused.output
    assert f"encode it again: longmatch index {folder} --reencode" in refused.output
    planned = CliRunner().invoke(main, ["index", str(folder), "--reencode", "--encoder", "other", "--dry-run"])
    assert planned.exit_code == 0 and f"{n_tokens:,} tokens, about " in planned.stdout
    assert "leave out PATH" in CliRunner().invoke(main, ["index", str(folder), ".", "--reencode"]).output
    done = CliRunner().invoke(main, ["index", str(folder), "--reencode", "--encoder", "other"])
    assert done.exit_code == 0 and f"12 encoded: {n_tokens:,} tokens" in done.stdout
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.meta["encoder"]["name"] == "other"


@pytest.mark.slow
def test_the_command_keeps_to_a_dtype_and_leaves_it(bert_folder: Path, tmp_path: Path) -> None:
    folder, text = tmp_path / "x.lm", tmp_path / "fox.txt"
    text.write_text("the fox and the dog. " * 9)
    model = tmp_path / "model"
    shutil.copytree(bert_folder, model)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["index", str(folder), *arguments])
        assert done.exit_code == 0, done.output
        with Index.open(folder) as index:
            return str(index.snapshot.meta["encoder"]["name"])

    assert run(str(text), "--encode", "all", "--encoder", str(model), "--dtype", "int8") == f"{model}:int8"
    assert run(str(text)) == f"{model}:int8"
    with Index.open(folder) as index:
        assert index.encoder.name == f"{model}:int8"
    assert run("--reencode", "--dtype", "float32") == str(model)
