from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.measurement import Measurement, measurement
from benchmarks.program import program
from benchmarks.runs import Case, Run, read_runs


@program
@measurement(quick="Nothing", work="Folder.")
def main(run: Measurement) -> None:
    """Record the seed, and whether a folder was given."""
    with run.folder() as folder:
        (folder / "kept").touch()
    case = Case(id="seed", values={"seed": run.seed})
    run.keep(Run(task="made", dataset="pets", system="made", origin=run.origin, cases=[case]))


@pytest.mark.parametrize("given", [["--seed", "3"], ["--seed", "3", "--quick"]])
def test_a_run_holds_seed_and_command(given: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(main, [*given, "--out", str(tmp_path)]).exit_code == 0
    (run,) = read_runs(tmp_path)
    assert (run.values("seed"), run.origin.seed) == ([3], 3)
    assert run.origin.command == " ".join(["python -m benchmarks study test_measurement", *given])


def test_a_quick_run_records_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.measurement.RESULTS", tmp_path)
    assert CliRunner().invoke(main, ["--quick"]).exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    options = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(main, options).exit_code == 0
    assert (tmp_path / "work/kept").is_file()
