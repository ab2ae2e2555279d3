from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from benchmarks.budgets.record import PlanRecord
from benchmarks.plans import main
from benchmarks.records import read_records


def test_a_plan_is_held_against_its_run(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--quick", "--documents", "3", "--encoder", str(bert_folder), "--memory", "8G", "--out", str(out)]
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code == 0, done.output
    (record,) = read_records(out)
    assert isinstance(record, PlanRecord)
    assert (record.name, record.n_documents, record.factory) == ("plan-pets-3-memory8000m-quick", 3, "Flat")
    (kept,) = record.rounds
    assert kept.plan_seconds > kept.seconds > 0 < kept.planned_seconds
    assert 0.3 < kept.peak_bytes / kept.planned_bytes < 3
    assert 0.8 < kept.disk_bytes / kept.planned_disk_bytes < 1.2
    assert record.n_tokens > 3 and "| pets | 3 |" in done.output


def test_a_budget_that_cannot_be_kept_is_told_by_its_reason(folder: Path, bert_folder: Path) -> None:
    options = ["--quick", "--encoder", str(bert_folder), "--memory", "1M"]
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code == 1
    assert "longmatch plan ended with" in done.stderr and "mend that first" in done.stderr
