from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.program import command_line, origin_of, program
from engine.errors import QueryError
from indexer.origin import describe_origin


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
@click.argument("path", type=click.Path(path_type=Path))
@click.option("-k", "--top", "k", default=10)
@click.option("--exact", is_flag=True)
@click.option("--encoder", default="")
@click.option("--vectors", type=click.Path(path_type=Path))
@click.option("--sizes", callback=read_sizes, default="")
@click.option("--out", default="here")
@click.pass_context
def sized(context: click.Context, out: str, **_: object) -> None:
    click.echo(command_line("study program", context, leave_out=("out",)))


def test_the_command_names_what_was_given_and_no_folder_of_this_machine() -> None:
    printed = CliRunner().invoke(sized, ["/some/where/a b.lm", "-k", "5", "--exact", "--out", "/tmp/x"]).output
    assert printed == "python -m benchmarks study program 'a b.lm' --top 5 --exact\n"


def test_the_recorded_command_holds_values_as_typed_and_files_without_their_folders(tmp_path: Path) -> None:
    def printed(*options: str) -> str:
        return CliRunner().invoke(sized, ["x", *options]).output.removeprefix("python -m benchmarks study program x ")

    assert printed("--sizes", "one=1,two=2") == "--sizes one=1,two=2\n"
    assert printed("--vectors", "somewhere/glove.txt") == "--vectors glove.txt\n"
    assert printed("--vectors", ".") == "--vectors .\n"
    assert printed("--encoder", "postgresql://me@host/papers") == "--encoder postgresql://...\n"
    assert printed("--encoder", str(tmp_path / "mine")) == "--encoder mine\n"
    assert printed("--encoder", f"{tmp_path}/mine:contriever-first") == "--encoder mine:contriever-first\n"
    assert printed("--encoder", "facebook/contriever:contriever-first") == (
        "--encoder facebook/contriever:contriever-first\n"
    )


def test_several_arguments_are_words_of_their_own() -> None:
    @click.command()
    @click.argument("names", nargs=-1)
    @click.pass_context
    def several(context: click.Context, **_: object) -> None:
        click.echo(command_line("run several", context, leave_out=()))

    assert CliRunner().invoke(several, ["one", "a b"]).output == "python -m benchmarks run several one 'a b'\n"


def test_an_origin_knows_commit_machine_and_versions() -> None:
    origin = describe_origin("python -m benchmarks study program", seed=3)
    assert (origin.command, origin.seed) == ("python -m benchmarks study program", 3)
    assert len(origin.commit) in (0, 40)
    assert origin.machine.cores >= 1
    assert {"python", "numpy"} <= origin.versions.keys()
