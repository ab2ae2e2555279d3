from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.runs import read_runs
from benchmarks.tasks.faithfulness import main
from tests.benchmarks.made_runs import error_of, run_program
from tests.encoders.tiny import ENCODERS


@pytest.mark.slow
def test_a_run_measures_the_order_of_the_model_of_an_encoder_that_explains_itself(
    long_folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    ENCODERS["smith fixed normal"](bert_folder).save_pretrained(tmp_path / "encoder")
    options = ["--encoder", tmp_path / "encoder", "--queries", "1", "--encoded", "1"]
    done = run_program(main, long_folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    runs = read_runs(tmp_path / "out")
    assert len(runs) == 16  # four orders of two sides, rescored in two ways
    for run in (run for run in runs if run.system == "model"):
        assert (run.details["curves"]["deletion"][0], run.details["curves"]["deletion"][-1]) == (1, 0)
    assert "minus model [95 %]" in done.output
    assert "| long | encoder | target, re-encoded (1) | sufficiency (low) |" in done.output


@pytest.mark.slow
def test_the_command_measures_queries_of_the_split(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = ["--encoder", bert_folder, "--queries", "2", "--encoded", "1"]
    done = run_program(main, long_folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    runs = {run.name: run for run in read_runs(tmp_path / "out")}
    assert len(runs) == 12  # three orders of two sides, rescored in two ways
    run = runs["long-breakdown-bert-chunk-stored-query-test"]
    assert (run.details["n_documents"], run.details["n_hits"], sorted(run.case_ids)) == (24, 2, ["d0", "d2"])
    assert "--queries 2 --encoded 1" in run.origin.command
    assert "| long | bert | query, stored (2) | deletion, area (low) |" in done.output


def test_documents_of_one_chunk_are_refused(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    error = error_of(main, folder, "--encoder", bert_folder, "--work", tmp_path / "work")
    assert error.startswith("Error: none of 2 queries of dataset pets has a hit with two chunks or more")
