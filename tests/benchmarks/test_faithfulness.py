from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.faithfulness import main
from tests.benchmarks.sections.corpora import write_long


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    return write_long(tmp_path / "long")


def test_the_command_follows_queries_of_the_split(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--queries", "2", "--random", "2", "--encoded", "1", "--unit", "section"]
    folders = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    given = [str(long_folder), "--encoder", str(bert_folder), *options, *folders]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    (path,) = (tmp_path / "out").iterdir()
    record = json.loads(path.read_text())
    assert path.name == "faithfulness-long-bert-test-section.json"
    assert (record["n_documents"], record["n_hits"], record["is_quick"]) == (24, 2, False)
    assert {tuple(sorted(arm["query_ids"])) for arm in record["arms"] if arm["method"] == "stored"} == {("d0", "d2")}
    assert record["settings"]["unit"] == "section" and "--unit section" in record["origin"]["command"]
    assert "| long | bert | query, stored (2) | deletion, area (low) |" in done.output


def test_a_quick_run_writes_no_record_unless_asked(
    long_folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.faithfulness.RESULTS", tmp_path / "results")
    given = [str(long_folder), "--encoder", str(bert_folder), "--quick"]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "| long, quick | bert | target, re-encoded (1) | sufficiency (low) |" in done.output
    assert not (tmp_path / "results").exists()


def test_documents_of_one_part_cannot_be_followed(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    given = [str(folder), "--encoder", str(bert_folder), "--unit", "section", "--work", str(tmp_path / "work")]
    said = CliRunner().invoke(main, given).stderr.splitlines()[-1]
    assert said.startswith("Error: none of 2 queries of dataset pets has a hit with two sections or more")
