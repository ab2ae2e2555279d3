from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.runs import Case, Run, read_run, run_files
from benchmarks.tables.sections import FaithfulnessDetails, faithfulness_table
from benchmarks.tasks.faithfulness import main
from indexer.origin import Origin
from tests.encoders.tiny import ENCODERS

CURVES = ("deletion", "insertion", "deletion_rank", "insertion_rank")
MEASURES = (*(f"{name}_area" for name in CURVES), "comprehensiveness", "sufficiency")


def made_run(order: str, value: float, origin: Origin) -> Run:
    details = FaithfulnessDetails("stored", "query", 9, 5, [0, 0.5, 1], {name: [1, value, 0] for name in CURVES})
    cases = [Case(id=id_, values=dict.fromkeys(MEASURES, round(value + 0.1 * at, 1))) for at, id_ in enumerate("abcde")]
    given = {"task": "faithfulness", "dataset": "rfc@0", "encoder": "mean@0f", "variant": "chunk-stored-query"}
    return Run(**given, system=order, details=asdict(details), origin=origin, cases=cases)


@pytest.fixture
def runs(origin: Origin) -> list[Run]:
    return [made_run("breakdown", 0.1, origin), made_run("cosine", 0.1, origin), made_run("random", 0.5, origin)]


def test_a_row_has_the_area_between_two_curves_and_its_test(runs: list[Run], origin: Origin) -> None:
    start = "| mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 |"
    # Two of 32 sign patterns are as extreme; Holm's correction multiplies the smallest of six p-values by six.
    tests = "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 |"
    table = faithfulness_table(runs)
    assert f"| rfc {start[:-2]} {tests}" in table and "model" not in table
    table = faithfulness_table(
        [*runs, *(replace(run, dataset="pets@0") for run in runs), made_run("model", 0.2, origin)]
    )
    assert "| breakdown | cosine | random | model | minus random [95 %] | minus random p |" in table
    assert "| minus model [95 %] | minus model p |" in table
    # Each of the three rivals is corrected in its own family. Without a model its cells are empty.
    assert f"| pets {start}  {tests}  |  |" in table
    assert f"| rfc {start} 0.400 {tests} -0.100 [-0.100, -0.100] | 0.375 |" in table


@pytest.mark.slow
def test_a_run_measures_the_order_of_the_model_of_an_encoder_that_explains_itself(
    long_folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    ENCODERS["smith fixed normal"](bert_folder).save_pretrained(tmp_path / "encoder")
    given = [str(long_folder), "--encoder", str(tmp_path / "encoder"), "--queries", "1", "--encoded", "1"]
    given += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = [read_run(path) for path in run_files(tmp_path / "out")]
    assert len(runs) == 16  # four orders of two sides, rescored in two ways
    for run in (run for run in runs if run.system == "model"):
        assert (run.details["curves"]["deletion"][0], run.details["curves"]["deletion"][-1]) == (1, 0)
    assert "minus model [95 %]" in done.output
    assert "| long | encoder | target, re-encoded (1) | sufficiency (low) |" in done.output


@pytest.mark.slow
def test_the_command_measures_queries_of_the_split(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--queries", "2", "--encoded", "1"]
    folders = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    given = [str(long_folder), "--encoder", str(bert_folder), *options, *folders]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = {run.name: run for run in map(read_run, run_files(tmp_path / "out"))}
    assert len(runs) == 12  # three orders of two sides, rescored in two ways
    run = runs["long-breakdown-bert-chunk-stored-query-test"]
    assert (run.details["n_documents"], run.details["n_hits"], sorted(run.case_ids)) == (24, 2, ["d0", "d2"])
    assert "--queries 2 --encoded 1" in run.origin.command
    assert "| long | bert | query, stored (2) | deletion, area (low) |" in done.output


def test_documents_of_one_chunk_are_refused(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    given = [str(folder), "--encoder", str(bert_folder), "--work", str(tmp_path / "work")]
    error = CliRunner().invoke(main, given).stderr.splitlines()[-1]
    assert error.startswith("Error: none of 2 queries of dataset pets has a hit with two chunks or more")
