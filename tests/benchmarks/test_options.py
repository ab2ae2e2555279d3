from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from benchmarks.program import log, names_of, read_numbers


@click.command()
@click.option("--systems", default="b", callback=names_of(["a", "b"]))
@click.option("--shots", default="5", callback=read_numbers)
@click.option("--sizes", callback=read_numbers)
def program(systems: tuple[str, ...], shots: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    log("working")
    click.echo(f"{systems} {shots} {sizes}")


def test_names_and_numbers_are_read_each_once() -> None:
    done = CliRunner().invoke(program, ["--systems", "b, a,b", "--shots", "10,5,10"])
    assert (done.stdout, done.stderr) == ("('b', 'a') (10, 5) ()\n", "working\n")
    assert CliRunner().invoke(program).stdout == "('b',) (5,) ()\n"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--systems", "a,c", "'c' is not one of a, b"), ("--shots", "5,x", "'5,x' must be whole numbers from 1 on")],
)
def test_unknown_names_and_values_that_are_not_numbers_are_refused(option: str, value: str, said: str) -> None:
    assert said in CliRunner().invoke(program, [option, value]).stderr
