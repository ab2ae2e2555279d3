"""The pages as they are committed, compared with the committed runs: every table and number on them."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import STUDIES, TASKS
from benchmarks.report import drawn, main
from benchmarks.runs import CHECKOUT, read_header, read_run, run_files
from benchmarks.tables.pivot import can_repeat


def test_every_table_of_the_readme_is_that_of_its_runs() -> None:
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    runs = [read_run(path) for path in run_files() if path.parent.name in ("retrieval", "board")]
    assert drawn(readme, runs) == readme


@pytest.mark.slow
def test_every_table_is_that_of_its_runs() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")


def test_every_command_that_is_said_to_repeat_a_run_is_one_of_today() -> None:
    for command in {read_header(path)["origin"]["command"] for path in run_files()}:
        if can_repeat(command):
            _, _, _, verb, name, *words = shlex.split(command)
            program = {"run": TASKS, "study": STUDIES}[verb].get_command(click.Context(main), name)
            assert program is not None
            program.make_context(name, words)
