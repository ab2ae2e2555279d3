from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import Programs, main


def test_every_module_with_a_command_is_a_program() -> None:
    assert isinstance(main, Programs)
    assert {"retrieval", "report", "kill", "training"} <= set(main.help_lines)
    assert {"bm25", "systems", "datasets"}.isdisjoint(main.help_lines)
    for name in main.help_lines:
        assert isinstance(import_module(f"benchmarks.{name}").main, click.Command)


def test_help_has_a_line_for_each_program_and_imports_none() -> None:
    code = (
        "import sys; from benchmarks.__main__ import main; main(['--help'], standalone_mode=False); "
        "assert 'torch' not in sys.modules and 'benchmarks.retrieval' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listed = done.stdout.partition("Programs:\n")[2].splitlines()
    assert "report Draw the tables of the pages from the records." in [" ".join(line.split()) for line in listed]
    assert isinstance(main, Programs)
    assert set(main.help_lines) <= {line.split()[0] for line in listed}


def test_the_quick_part_of_every_program_is_run_by_its_tests() -> None:
    assert isinstance(main, Programs)
    for name in main.help_lines:
        program = import_module(f"benchmarks.{name}").main
        if any("--quick" in parameter.opts for parameter in program.params):
            assert '"--quick"' in Path(__file__).with_name(f"test_{name}.py").read_text(), name


@pytest.mark.parametrize("name", ["retrieval", "report"])
def test_a_program_is_the_same_command_here_and_by_itself(name: str) -> None:
    here = CliRunner().invoke(main, [name, "--help"], catch_exceptions=False)
    alone = CliRunner().invoke(import_module(f"benchmarks.{name}").main, ["--help"], prog_name=f"main {name}")
    assert here.output.split(maxsplit=3)[3] == alone.output.split(maxsplit=3)[3]
    assert f"python -m benchmarks.{name}" in here.output


def test_an_unknown_program_is_a_line() -> None:
    done = CliRunner().invoke(main, ["retreival"])
    assert (done.exit_code, done.stderr.splitlines()[-1][:34]) == (2, "Error: No such command 'retreival'")
