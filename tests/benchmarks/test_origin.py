from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from benchmarks.origin import command_line
from engine.origin import describe_origin


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("-k", "--top", "k", default=10)
@click.option("--exact", is_flag=True)
@click.option("--encoder", default="")
@click.option("--vectors", type=click.Path(path_type=Path))
@click.option("--out", default="here")
@click.pass_context
def program(
    context: click.Context, path: Path, k: int, exact: bool, encoder: str, vectors: Path | None, out: str
) -> None:
    click.echo(command_line("benchmarks.program", context, leave_out=("out",)))


def test_the_command_names_what_was_given_and_no_folder_of_this_machine() -> None:
    printed = CliRunner().invoke(program, ["/some/where/a b.lm", "-k", "5", "--exact", "--out", "/tmp/x"]).output
    assert printed == "python -m benchmarks.program 'a b.lm' --top 5 --exact\n"


def test_files_are_named_without_their_folders_and_hub_names_stay(tmp_path: Path) -> None:
    def printed(*options: str) -> str:
        return CliRunner().invoke(program, ["x", *options]).output.removeprefix("python -m benchmarks.program x ")

    assert printed("--vectors", "somewhere/glove.txt") == "--vectors glove.txt\n"
    assert printed("--vectors", ".") == "--vectors .\n"
    assert printed("--encoder", str(tmp_path / "mine")) == "--encoder mine\n"
    assert printed("--encoder", f"{tmp_path}/mine:contriever-first") == "--encoder mine:contriever-first\n"
    assert printed("--encoder", "facebook/contriever:contriever-first") == (
        "--encoder facebook/contriever:contriever-first\n"
    )


def test_an_origin_knows_commit_machine_and_versions() -> None:
    origin = describe_origin("python -m benchmarks.program", seed=3)
    assert (origin.command, origin.seed) == ("python -m benchmarks.program", 3)
    assert len(origin.commit) in (0, 40)
    assert origin.machine.cores >= 1
    assert {"python", "numpy"} <= origin.versions.keys()
