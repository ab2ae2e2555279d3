"""The first tries of a new user: what is run, and how it is judged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.first_minutes import N_QUICK, main
from benchmarks.newcomers.record import FirstMinutesRecord, Outcome, TryRow
from benchmarks.newcomers.running import judge, last_line, run_code
from benchmarks.newcomers.table import first_minutes_table
from benchmarks.newcomers.tries import TRIES
from benchmarks.records import read_records
from indexer.training.origin import Origin


@pytest.mark.parametrize(
    ("status", "stdout", "stderr", "kind"),
    [
        (0, "1 eip-2718.md\n", "", "answer"),
        (0, "1 other.md\n", "", "wrong answer"),
        (1, "", "Traceback (most recent call last):\n  ...\nengine.errors.QueryError: no such field\n", "clear error"),
        (1, "", "Error: x.lm holds no index\n", "clear error"),
        (1, "", "Traceback (most recent call last):\n  ...\nAttributeError: 'str' object has no\n", "traceback"),
    ],
)
def test_a_try_is_judged_by_what_a_person_sees(status: int, stdout: str, stderr: str, kind: str) -> None:
    assert judge(subprocess.CompletedProcess([], status, stdout, stderr), "eip-2718") == kind


def test_the_ten_tries_are_python_and_differ() -> None:
    for one in TRIES:
        compile(one.before, one.name, "exec")
        compile(one.after, one.name, "exec")
    assert len({one.name for one in TRIES}) == 10


def test_code_runs_with_the_packages_of_its_checkout_alone(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text("WHERE = 'there'\n")
    done, _ = run_code("import engine\nprint(engine.WHERE)\nimport longmatch", tmp_path, tmp_path)
    assert done.stdout == "there\n" and "No module named 'longmatch'" in done.stderr


def test_a_quick_run_finds_answers(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (record,) = read_records(tmp_path)
    assert isinstance(record, FirstMinutesRecord) and record.is_quick
    assert [row.name for row in record.rows] == [one.name for one in TRIES[:N_QUICK]]
    assert {row.after.kind for row in record.rows} == {"answer"}
    assert all(row.before is None for row in record.rows)


def test_the_table_shows_both_commits(origin: Origin) -> None:
    row = TryRow("import", Outcome("traceback", 0.04, 1, "ModuleNotFoundError"), Outcome("answer", 0.3, 1, "<module>"))
    table = first_minutes_table([FirstMinutesRecord("662f4eb0123456", "later", False, [row], origin)])
    assert "| First try | Before (662f4eb012) | Seconds | After | Seconds | Lines typed |" in table
    assert "| import | traceback | 0.0 | answer | 0.3 | 1 |" in table


def test_a_path_begins_at_the_checkout(tmp_path: Path) -> None:
    text = f"one\n<module 'longmatch' from '{tmp_path}/longmatch/__init__.py'>\n"
    done = subprocess.CompletedProcess([], 0, text, "")
    assert last_line(done, tmp_path) == "<module 'longmatch' from 'longmatch/__init__.py'>"
