"""Short tests of interrupted operations and damaged copies; `python -m benchmarks study faults` is the long form.

Each test runs in its own process: a process that forks must not have used the threads of FAISS or torch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.faults.interruptions import Fault
from benchmarks.faults.operations import OPERATIONS

SECONDS = 500  # enough for each on a busy machine, and less than the time limit of a test


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its children too, which hold the pipe open
    assert process.returncode == 0, output[-4000:]
    return output


@pytest.mark.slow
def test_interruptions_and_damage_lose_nothing(tmp_path: Path) -> None:
    _run("benchmarks", "study", "faults", *"--kills 24 --errors 32 --copies 21 --out".split(), str(tmp_path))
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text("utf-8"))
    assert record["problems"] == []
    assert set(record["operations"]) == {operation.name for operation in OPERATIONS}
    assert sum(record["operations"].values()) == 56
    assert set(record["interruptions"]) == {fault.value for fault in Fault}
    copies = record["copies"].values()
    assert (sum(one["n_cases"] for one in copies), sum(one["n_wrong"] for one in copies)) == (21, 0)


@pytest.mark.slow
def test_changes_are_recorded_and_what_an_operation_loses_is_found() -> None:
    forked = str(Path(__file__).with_name("forked.py"))
    assert "10 passed" in _run("pytest", "-p", "no:cacheprovider", "-p", "no:xdist", forked)
