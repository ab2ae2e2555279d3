"""The pages as they are committed, compared with the committed runs: every table and number on them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import STUDIES, TASKS
from benchmarks.report import drawn, main
from benchmarks.runs import CHECKOUT, Run, read_header, read_run, run_files
from benchmarks.tables.pivot import can_repeat


@pytest.fixture(scope="module")
def read_once() -> Iterator[Callable[[Path], Run]]:
    """`read_run`, which reads each run once for all tests, so that it is judged once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.runs.read_run", cached := cache(read_run))
        yield cached


def test_every_table_of_the_readme_is_that_of_its_runs(read_once: Callable[[Path], Run]) -> None:
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    runs = [read_once(path) for path in run_files() if path.parent.name in ("retrieval", "board")]
    assert drawn(readme, runs) == readme


@pytest.mark.slow
@pytest.mark.usefixtures("read_once")
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
