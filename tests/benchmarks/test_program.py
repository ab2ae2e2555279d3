from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from benchmarks.program import origin_of, program
from engine.errors import QueryError


@program
@click.option("--depth", default=10)
@click.option("--data", default="data")
@click.pass_context
def main(context: click.Context, depth: int, data: str) -> None:
    """Print where a record would come from."""
    if depth < 1:
        raise QueryError("depth is 0; it must be at least 1")
    click.echo(origin_of(context, depth).command)


def test_an_error_of_the_engine_is_one_line() -> None:
    done = CliRunner().invoke(main, ["--depth", "0"])
    assert (done.exit_code, done.stderr) == (1, "Error: depth is 0; it must be at least 1\n")


@pytest.mark.parametrize("given", [["--depth", "5"], ["--depth", "5", "--data", "elsewhere"]])
def test_a_command_has_the_name_of_its_file_and_no_folders(given: list[str]) -> None:
    assert CliRunner().invoke(main, given).output == "python -m benchmarks.test_program --depth 5\n"
