from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from benchmarks.origin import command_line
from indexer.training.origin import describe_origin


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
def program(context: click.Context, out: str, **_: object) -> None:
    click.echo(command_line("benchmarks.program", context, leave_out=("out",)))


def test_the_command_names_what_was_given_and_no_folder_of_this_machine() -> None:
    printed = CliRunner().invoke(program, ["/some/where/a b.lm", "-k", "5", "--exact", "--out", "/tmp/x"]).output
    assert printed == "python -m benchmarks.program 'a b.lm' --top 5 --exact\n"


def test_values_are_told_as_they_are_typed_and_files_without_their_folders(tmp_path: Path) -> None:
    def printed(*options: str) -> str:
        return CliRunner().invoke(program, ["x", *options]).output.removeprefix("python -m benchmarks.program x ")

    assert printed("--sizes", "one=1,two=2") == "--sizes one=1,two=2\n"
    assert printed("--vectors", "somewhere/glove.txt") == "--vectors glove.txt\n"
    assert printed("--vectors", ".") == "--vectors .\n"
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
        click.echo(command_line("benchmarks.several", context, leave_out=()))

    assert CliRunner().invoke(several, ["one", "a b"]).output == "python -m benchmarks.several one 'a b'\n"


def test_an_origin_knows_commit_machine_and_versions() -> None:
    origin = describe_origin("python -m benchmarks.program", seed=3)
    assert (origin.command, origin.seed) == ("python -m benchmarks.program", 3)
    assert len(origin.commit) in (0, 40)
    assert origin.machine.cores >= 1
    assert {"python", "numpy"} <= origin.versions.keys()
