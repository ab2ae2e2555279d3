"""A first run that commits nothing leaves nothing that blocks the next run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engine.store.writer import Writer
from indexer.building.builder import build
from indexer.cli import main
from tests.fakes import FakeEncoder, make_corpus


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    (tmp_path / "papers").mkdir()
    for number in range(3):
        (tmp_path / "papers" / f"{number}.txt").write_text(f"the quick fox runs over the river {number}")
    return tmp_path / "papers"


@pytest.mark.parametrize(
    "wrong", [["--device", "cuda:99"], ["--factory", "Foo12"], ["--language", "klingon"], ["--encoder", "/no/such"]]
)
def test_a_refused_first_run_leaves_no_folder(
    tmp_path: Path, papers: Path, bert_folder: Path, wrong: list[str]
) -> None:
    refused = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, *wrong)
    assert refused.exit_code == 1 and not (tmp_path / "x.lm").exists()


def test_a_run_whose_documents_all_fail_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    failed = run("index", tmp_path / "x.lm", tmp_path / "empty.txt", "--encode", "none")
    assert failed.exit_code == 1 and not (tmp_path / "x.lm").exists()


def test_ctrl_c_before_the_first_commit_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, "commit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder())
    assert not (tmp_path / "x.lm").exists()


def test_ctrl_c_after_a_commit_leaves_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("indexer.building.builder.join_small_shards", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder())
    monkeypatch.undo()
    assert build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder()).n_unchanged == 3


@pytest.mark.slow
def test_a_stub_of_a_killed_run_does_not_block_a_plan(tmp_path: Path, papers: Path, bert_folder: Path) -> None:
    with Writer(tmp_path / "x.lm"):
        pass
    dry = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["n_new"] == 3
    made = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, "--memory", "8G")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("3 added")


def test_an_index_of_words_can_be_planned_for_vectors(tmp_path: Path, papers: Path, bert_folder: Path) -> None:
    assert run("index", tmp_path / "x.lm", papers, "--encode", "none").exit_code == 0
    dry = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["n_unchanged"] == 3
