from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.measuring.isolation import ProcessFailed
from benchmarks.speed.answering import answer
from benchmarks.speed.first_answer import first_answers, forget_pages, main
from benchmarks.synthetic import SHORT, documents
from indexer.building.builder import build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", documents(SHORT, 12), encode="none", language="english")
    return tmp_path / "x.lm"


def test_an_answer_comes_after_opening_and_reads_more(folder: Path) -> None:
    found = json.loads(answer(str(folder), "short-000003"))
    assert 0 < found["open_ms"] < found["answer_ms"]
    assert 0 < found["open_cpu_ms"] < found["answer_cpu_ms"]
    assert 0 <= found["open_bytes"] <= found["answer_bytes"]


def test_forgetting_cached_pages_changes_no_file(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    forget_pages(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_process_that_fails_is_an_error(folder: Path) -> None:
    with pytest.raises(ProcessFailed, match="no document 'none'"):
        first_answers(folder, ["none"], is_cold=False)


@pytest.mark.slow
def test_a_record_is_written_and_drawn(folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(folder), "--runs", "1", "--name", "twelve", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "out").iterdir()
    values = json.loads(path.read_text("utf-8"))
    assert (path.name, values["n_documents"], values["n_chunks"]) == ("first-answer-twelve.json", 12, 0)
    assert "| `twelve` | 12 | 0 | " in done.stdout
    assert done.stdout.count("`twelve`") == 2
