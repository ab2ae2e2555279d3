"""`pytest` without arguments, in a folder of its own with the hook of tests/conftest.py."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import os
from pathlib import Path

import pytest

def test_here():
    Path(os.environ["SEEN"], str(os.getppid())).touch()

@pytest.mark.slow
def test_slow():
    raise AssertionError("left out")
"""


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_workers_start_no_workers_and_leave_slow_tests_out(arguments: tuple[str, ...], tmp_path: Path) -> None:
    source = (ROOT / "tests" / "conftest.py").read_text("utf-8")
    start = source.index("@pytest.hookimpl")
    hook = source[start : source.index("\n\n\n", start)]
    tests, seen = tmp_path / "tests", tmp_path / "seen"
    tests.mkdir()
    seen.mkdir()
    (tests / "conftest.py").write_text(f"import pytest\n\n{hook}\n", "utf-8")
    (tests / "test_one.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers =\n    slow\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:langsmith_plugin", "-p", "no:cacheprovider", *arguments]
    environment = {"SEEN": str(seen), "PATH": "", "HOME": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0 and "1 passed" in output, output
    assert [path.name for path in seen.iterdir()] == [str(process.pid)], "the worker was started by the command itself"
