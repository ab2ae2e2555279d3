from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.runs import read_runs
from benchmarks.speed import encode
from benchmarks.speed.encode import TITLES, main
from tests.benchmarks.conftest import run_here
from tests.benchmarks.made_runs import error_of, run_program

pytest.importorskip("sentence_transformers")
pytestmark = pytest.mark.usefixtures("restored_settings")


@pytest.mark.slow
def test_every_way_has_its_turn_and_all_is_recorded(
    folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "run_fresh", run_here)
    options = ["--quick", "--rounds", "1", "--threads", "1", "--encoder", bert_folder]
    done = run_program(main, folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    (run_file,) = read_runs(tmp_path / "out")
    assert run_file.name == "pets_quick-way-to-encode-bert-cpu-threads1-test" and not list(
        (tmp_path / "work").iterdir()
    )
    assert [case.id for case in run_file.cases if "cores" in case.values] == list(TITLES.values())
    rates = {case.id: case.values["chunks/s"] for case in run_file.cases}
    whole, with_index = list(rates)[:2]
    assert 0 < rates[with_index] < rates[whole]
    assert {case.values["ratio"] for case in run_file.cases if case.id == TITLES["st-float32"]} == {1.0}
    assert "| sentence-transformers, defaults | cpu, 1 threads | float32 |" in done.output


def test_a_missing_device_is_reported_in_one_line(bert_folder: Path) -> None:
    error = error_of(main, "pets", "--device", "cuda:99", "--encoder", bert_folder)
    assert error.startswith("Error: ") and "cuda:99" in error
