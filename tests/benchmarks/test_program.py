from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.program import command_line, log, names_of, origin_of, program, read_numbers
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
    assert CliRunner().invoke(main, given).output == "python -m benchmarks study test_program --depth 5\n"


def read_sizes(_context: click.Context, _option: click.Parameter, given: str) -> dict[str, str]:
    return dict(one.split("=") for one in given.split(",") if one)


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("-k", "--top", "k", default=10)
@click.option("--exact", is_flag=True)
@click.option("--encoder", default="")
@click.option("--vectors", type=click.Path(path_type=Path))
@click.option("--sizes", callback=read_sizes, default="")
@click.option("--out", default="here")
@click.pass_context
def sized(context: click.Context, out: str, **_: object) -> None:
    click.echo(command_line("study program", context, leave_out=("out",)))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["/some/where/a b.lm", "-k", "5", "--exact", "--out", "/tmp/x"], "'a b.lm' --top 5 --exact"),
        (["one", "a b"], "one 'a b'"),
        (["--sizes", "one=1,two=2"], "--sizes one=1,two=2"),
        (["--vectors", "somewhere/glove.txt"], "--vectors glove.txt"),
        (["--vectors", "."], "--vectors ."),
        (["--encoder", "https://me@host/papers"], "--encoder https://..."),
        (["--encoder", "/some/where/mine"], "--encoder mine"),
        (["--encoder", "/some/where/mine:contriever-first"], "--encoder mine:contriever-first"),
        (["--encoder", "facebook/contriever:first"], "--encoder facebook/contriever:first"),
    ],
)
def test_the_command_names_values_as_typed_and_no_folder_of_this_machine(given: list[str], shown: str) -> None:
    assert CliRunner().invoke(sized, given).output == f"python -m benchmarks study program {shown}\n"


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
