from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.sections.faithfulness_report import draw_faithfulness, faithfulness_table
from benchmarks.sections.records import Arm, FaithfulnessRecord
from benchmarks.tasks.faithfulness import main
from indexer.training.origin import Origin
from tests.benchmarks.sections.corpora import write_long

MEASURES = (
    *("deletion_area", "insertion_area", "comprehensiveness", "sufficiency"),
    *("deletion_rank_area", "insertion_rank_area"),
)


def arm(order: str, value: float) -> Arm:
    curves = {name: [1.0, value, 0.0] for name in ("deletion", "insertion", "deletion_rank", "insertion_rank")}
    values = {name: [round(value + 0.1 * number, 1) for number in range(5)] for name in MEASURES}
    return Arm("stored", "query", order, list("abcde"), curves, values)


@pytest.fixture
def record(origin: Origin) -> FaithfulnessRecord:
    arms = [arm("breakdown", 0.1), arm("cosine", 0.1), arm("random", 0.5)]
    shares = {"stored": [0.0, 0.5, 1.0]}
    return FaithfulnessRecord(
        "rfc", "rfc@0", "test", "mean@0f", {"unit": "chunk"}, False, 9, 5, shares, arms, 1.0, origin
    )


def test_a_row_has_the_area_between_two_curves_and_its_test(record: FaithfulnessRecord) -> None:
    row = next(line for line in faithfulness_table([record]).splitlines() if "deletion, area (low)" in line)
    # Of 32 sign patterns two are as extreme, and Holm takes the smallest of six p-values six times.
    assert row == (
        "| rfc | mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 "
        "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 |"
    )


def test_every_method_side_and_measure_has_a_row(record: FaithfulnessRecord) -> None:
    lines = faithfulness_table([record]).splitlines()
    assert sum(line.startswith("| rfc |") for line in lines) == 6
    assert lines[-1] == "Measured: commit 0123456789 on A Processor, 2 cores, 24 GiB."


def test_deletion_and_insertion_are_drawn(record: FaithfulnessRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert sorted(path.name for path in draw_faithfulness(record, tmp_path)) == [
        "faithfulness-rfc-mean-test-chunk-stored-query-deletion.png",
        "faithfulness-rfc-mean-test-chunk-stored-query-deletion.svg",
        "faithfulness-rfc-mean-test-chunk-stored-query-insertion.png",
        "faithfulness-rfc-mean-test-chunk-stored-query-insertion.svg",
    ]


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
    monkeypatch.setattr("benchmarks.tasks.faithfulness.RESULTS", tmp_path / "results")
    given = [str(long_folder), "--encoder", str(bert_folder), "--quick"]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "| long, quick | bert | target, re-encoded (1) | sufficiency (low) |" in done.output
    assert not (tmp_path / "results").exists()


def test_documents_of_one_part_cannot_be_followed(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    given = [str(folder), "--encoder", str(bert_folder), "--unit", "section", "--work", str(tmp_path / "work")]
    said = CliRunner().invoke(main, given).stderr.splitlines()[-1]
    assert said.startswith("Error: none of 2 queries of dataset pets has a hit with two sections or more")
