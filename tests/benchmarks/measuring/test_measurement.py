from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.program import program
from benchmarks.record_file import Recorded
from indexer.origin import Origin


@dataclass(frozen=True)
class Made(Recorded, kind="made", file="made"):
    value: int
    origin: Origin


@program
@measurement(quick="Nothing", work="Folder.")
def main(run: Measurement) -> None:
    """Record the seed, and whether a folder was given."""
    with run.folder() as folder:
        (folder / "kept").touch()
    run.keep(Made(run.seed, run.origin))


@pytest.mark.parametrize("given", [["--seed", "3"], ["--seed", "3", "--quick"]])
def test_a_record_holds_seed_and_command(given: list[str], tmp_path: Path) -> None:
    assert CliRunner().invoke(main, [*given, "--out", str(tmp_path)]).exit_code == 0
    record = json.loads((tmp_path / "made.json").read_text())
    assert (record["value"], record["origin"]["seed"]) == (3, 3)
    assert record["origin"]["command"] == " ".join(["python -m benchmarks study test_measurement", *given])


def test_a_quick_run_records_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.measuring.measurement.RESULTS", tmp_path)
    assert CliRunner().invoke(main, ["--quick"]).exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_given_folder_is_kept(tmp_path: Path) -> None:
    options = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(main, options).exit_code == 0
    assert (tmp_path / "work/kept").is_file()
