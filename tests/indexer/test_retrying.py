"""`--retry-failures` reads only the documents again that failed before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engine.errors import IndexMismatch
from engine.store.presence import stored_failures, stored_sources
from engine.store.writer import Writer
from indexer.building.retrying import find_failed
from indexer.cli import main


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """One document that is indexed, three whose files are empty, and a line that is not JSON."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "well.txt").write_text("foxes and rivers")
    for name in ("a.txt", "sub/b.txt", "c.txt"):
        (tmp_path / "in" / name).touch()
    (tmp_path / "lines.jsonl").write_text("no json\n")
    made = run("index", tmp_path / "x.lm", tmp_path / "in", tmp_path / "lines.jsonl", "--encode", "none")
    assert made.exit_code == 3
    return tmp_path / "x.lm"


def test_only_what_failed_is_read_again_under_its_doc_id(index: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub" / "b.txt").write_text("dogs and houses")
    (tmp_path / "in" / "well.txt").write_text("this change waits for a run over the folder")
    (tmp_path / "in" / "c.txt").unlink()
    again = run("index", index, "--retry-failures", "--encode", "none", "--json")
    assert again.exit_code == 3
    report = json.loads(again.stdout)
    assert (report["n_added"], report["n_replaced"], report["n_unchanged"], len(report["failures"])) == (1, 0, 0, 1)
    assert f"not read again: {tmp_path}/in/c.txt: it is no longer there; bring it back" in again.stderr
    assert f"not read again: {tmp_path}/lines.jsonl:1: it is a line of {tmp_path}/lines.jsonl" in again.stderr
    assert sorted(doc_id for doc_id, _ in stored_sources(index)) == ["sub/b.txt", "well.txt"]
    assert [Path(source).name for source, _ in stored_failures(index)] == ["a.txt", "c.txt", "lines.jsonl:1"]


def test_a_retry_without_remaining_failures_exits_with_0(index: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "sub/b.txt", "c.txt"):
        (tmp_path / "in" / name).write_text(f"words of {name}")
    with Writer(index) as writer:
        writer.forget_failures([f"{tmp_path}/lines.jsonl:1"])
    again = run("index", index, "--retry-failures", "--encode", "none")
    assert again.exit_code == 0 and again.stdout.startswith("3 added")
    none = run("index", index, "--retry-failures")
    assert (none.exit_code, none.stdout) == (0, f"no document of {index} has failed\n")


def test_a_retry_adds_no_vectors_to_an_index_of_words(index: Path, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.txt").write_text("dogs and houses")
    again = run("index", index, "--retry-failures", "--json")
    report = json.loads(again.stdout)
    assert (report["n_added"], report["n_encoded"], report["n_missing"]) == (1, 0, 2)


def test_a_failure_without_doc_id_is_left_to_a_run_over_its_folder(index: Path, tmp_path: Path) -> None:
    with Writer(index) as writer:
        writer.record_failure(str(tmp_path / "in" / "a.txt"), "it holds no text")
    reasons = dict(find_failed(index).left_out)
    assert reasons[str(tmp_path / "in" / "a.txt")].startswith("its doc_id is not known")


def test_a_folder_without_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match="holds no index; make one"):
        find_failed(tmp_path)


def test_a_retry_with_paths_is_refused(index: Path, tmp_path: Path) -> None:
    wrong = run("index", index, tmp_path / "in", "--retry-failures")
    assert wrong.exit_code == 2 and f"leave out {tmp_path / 'in'}" in wrong.stderr
