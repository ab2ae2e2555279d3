from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.isolation import ProcessFailed
from benchmarks.speed import startup
from benchmarks.speed.commands import run_python
from benchmarks.speed.startup import StartRow, StartupRecord, measure, startup_table
from indexer.origin import describe_origin


def test_commands_run_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "open('log', 'a').write('{}')"
    monkeypatch.setattr(startup, "COMMANDS", {name: ["-c", code.format(name)] for name in "ab"})
    rows = measure(tmp_path, 2)
    assert (tmp_path / "log").read_text() == "abab"
    assert [(row.name, len(row.processor_seconds), len(row.seconds)) for row in rows] == [("a", 2, 2), ("b", 2, 2)]
    assert all(0 < spent < 5 for row in rows for spent in row.processor_seconds)


def test_a_command_that_fails_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "COMMANDS", {"fail": ["-c", "raise SystemExit('no index')"]})
    with pytest.raises(ProcessFailed, match=r"fail ended with 1 \(no index\); mend that first"):
        measure(tmp_path, 1)


def test_a_command_that_does_not_end_in_time_is_stopped() -> None:
    with pytest.raises(ProcessFailed, match=r"sleep did not end in 0\.2 s"):
        run_python(["-c", "import time; time.sleep(60)"], "sleep", patience=0.2)


def test_commands_are_compared_with_the_first_one() -> None:
    rows = [StartRow("import torch", [3.0, 2.0], [9.0, 4.0]), StartRow("query", [2.6, 3.0], [5.0, 6.0])]
    table = startup_table([StartupRecord(rows, describe_origin("python -m benchmarks study startup", 0))])
    assert table.splitlines()[2:4] == ["| `import torch` | 2.00 | 1.00 | 4.00 |", "| `query` | 2.60 | 1.30 | 5.00 |"]
