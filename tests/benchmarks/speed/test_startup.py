from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed import startup
from benchmarks.speed.startup import CommandFailed, measure


def test_commands_run_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "open('log', 'a').write('{}')"
    monkeypatch.setattr(startup, "COMMANDS", {name: ["-c", code.format(name)] for name in "ab"})
    rows = measure(tmp_path, 2)
    assert (tmp_path / "log").read_text() == "abab"
    assert [(row.name, len(row.processor_seconds), len(row.seconds)) for row in rows] == [("a", 2, 2), ("b", 2, 2)]
    assert all(0 < spent < 5 for row in rows for spent in row.processor_seconds)


def test_a_command_that_fails_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "COMMANDS", {"fail": ["-c", "raise SystemExit('no index')"]})
    with pytest.raises(CommandFailed, match="fail failed: no index"):
        measure(tmp_path, 1)
