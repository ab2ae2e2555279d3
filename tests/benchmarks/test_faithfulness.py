from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.runs import Case, Run, read_run, run_files
from benchmarks.tasks.faithfulness import FaithfulnessDetails, draw_faithfulness, faithfulness_table, main
from indexer.origin import Origin
from tests.benchmarks.sections.corpora import write_long
from tests.encoders.tiny import ENCODERS

MEASURES = (
    *("deletion_area", "insertion_area", "comprehensiveness", "sufficiency"),
    *("deletion_rank_area", "insertion_rank_area"),
)


def made_run(order: str, value: float, origin: Origin) -> Run:
    curves = {name: [1.0, value, 0.0] for name in ("deletion", "insertion", "deletion_rank", "insertion_rank")}
    details = FaithfulnessDetails("stored", "query", 9, 5, [0.0, 0.5, 1.0], curves)
    cases = [Case(id=id_, values=dict.fromkeys(MEASURES, round(value + 0.1 * at, 1))) for at, id_ in enumerate("abcde")]
    return Run(
        task="faithfulness",
        dataset="rfc@0",
        system=order,
        encoder="mean@0f",
        variant="chunk-stored-query",
        details=asdict(details),
        origin=origin,
        cases=cases,
    )


@pytest.fixture
def runs(origin: Origin) -> list[Run]:
    return [made_run("breakdown", 0.1, origin), made_run("cosine", 0.1, origin), made_run("random", 0.5, origin)]


def test_a_row_has_areas_and_their_tests_and_columns_of_the_model_where_an_encoder_has_one(
    runs: list[Run], origin: Origin
) -> None:
    # Two of 32 sign patterns are as extreme; Holm's correction multiplies the smallest of six p-values by six.
    assert (
        "| rfc | mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 "
        "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 |\n"
    ) in faithfulness_table(runs)
    assert "model" not in faithfulness_table(runs)
    other = [replace(run, dataset="pets@0") for run in runs]
    table = faithfulness_table([*runs, *other, made_run("model", 0.2, origin)])
    assert "| breakdown | cosine | random | model | minus random [95 %] | minus random p |" in table
    assert "| minus model [95 %] | minus model p |" in table
    rows = [line for line in table.splitlines() if "deletion, area (low)" in line]
    # With a model there are three rivals, each corrected in its own family. Without one its cells are empty.
    assert rows == [
        "| pets | mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 |  "
        "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 |  |  |",
        "| rfc | mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 | 0.400 "
        "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 | -0.100 [-0.100, -0.100] | 0.375 |",
    ]


@pytest.mark.slow
def test_the_command_measures_the_order_of_the_model_where_the_encoder_explains_itself(
    long_folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    ENCODERS["smith fixed normal"](bert_folder).save_pretrained(tmp_path / "encoder")
    given = [str(long_folder), "--encoder", str(tmp_path / "encoder"), "--quick", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = [read_run(path) for path in run_files(tmp_path / "out")]
    assert len(runs) == 16  # four orders of two sides, rescored in two ways
    for run in (run for run in runs if run.system == "model"):
        assert (run.details["curves"]["deletion"][0], run.details["curves"]["deletion"][-1]) == (1, 0)
    assert "minus model [95 %]" in done.output


def test_deletion_and_insertion_are_drawn(runs: list[Run], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert sorted(path.name for path in draw_faithfulness(runs, tmp_path)) == [
        "faithfulness-rfc-breakdown-mean-chunk-stored-query-test-deletion.png",
        "faithfulness-rfc-breakdown-mean-chunk-stored-query-test-deletion.svg",
        "faithfulness-rfc-breakdown-mean-chunk-stored-query-test-insertion.png",
        "faithfulness-rfc-breakdown-mean-chunk-stored-query-test-insertion.svg",
    ]


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    return write_long(tmp_path / "long")


@pytest.mark.slow
def test_the_command_measures_queries_of_the_split(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--queries", "2", "--random", "2", "--encoded", "1", "--unit", "section"]
    folders = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    given = [str(long_folder), "--encoder", str(bert_folder), *options, *folders]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = {run.name: run for run in map(read_run, run_files(tmp_path / "out"))}
    assert len(runs) == 12  # three orders of two sides, rescored in two ways
    run = runs["long-breakdown-bert-section-stored-query-test"]
    assert (run.details["n_documents"], run.details["n_hits"], sorted(run.case_ids)) == (24, 2, ["d0", "d2"])
    assert run.settings["unit"] == "section" and "--unit section" in run.origin.command
    assert "| long | bert | query, stored (2) | deletion, area (low) |" in done.output


@pytest.mark.slow
def test_a_quick_run_writes_no_record_by_default(
    long_folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.measuring.measurement.RESULTS", tmp_path / "results")
    given = [str(long_folder), "--encoder", str(bert_folder), "--quick"]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "| long, quick | bert | target, re-encoded (1) | sufficiency (low) |" in done.output
    assert not (tmp_path / "results").exists()


def test_documents_of_one_section_are_refused(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    given = [str(folder), "--encoder", str(bert_folder), "--unit", "section", "--work", str(tmp_path / "work")]
    error = CliRunner().invoke(main, given).stderr.splitlines()[-1]
    assert error.startswith("Error: none of 2 queries of dataset pets has a hit with two sections or more")
