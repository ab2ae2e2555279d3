"""Arguments and options that several commands share, and the exit statuses."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indexer.cli.terminal import echo, log

if TYPE_CHECKING:
    from engine import Index
    from engine.search.partition import Placement

_TYPED = "longmatch.arguments"
FAILED, PARTLY = 1, 3  # 0 is done, and click itself exits with 2 on wrong usage


index_argument = click.argument("index", type=click.Path(file_okay=False, path_type=Path))


class OrderedGroup(click.Group):
    """Lists its commands in the order in which a user needs them, not in alphabetical order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, as they were added."""
        return list(self.commands)


def keep_arguments(context: click.Context, arguments: Sequence[str]) -> None:
    """Remember the arguments of the whole command; see `typed_command`."""
    context.meta[_TYPED] = tuple(arguments)


def typed_command() -> str:
    """The command as it was typed, quoted for a shell; "" outside of a command."""
    context = click.get_current_context(silent=True)
    arguments = () if context is None else context.meta.get(_TYPED, ())
    return shlex.join(["longmatch", *arguments]) if arguments else ""


def _existing(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse a missing folder before anything is loaded; `Snapshot` checks its contents."""
    if not path.exists():
        raise click.ClickException(f"{path} holds no index; make one: longmatch index {path} PATH...")
    return path


existing_index_argument = click.argument("index", type=click.Path(file_okay=False, path_type=Path), callback=_existing)
device_option = click.option("--device", help="cpu, cuda or cuda:N; by default a GPU if torch sees one.")
search_device_option = click.option(
    "--device",
    help="cpu, cuda (all GPUs) or cuda:N, to encode and search there; by default a GPU encodes if torch sees one, "
    "and the CPU searches.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


@contextmanager
def opened_index(
    path: Path,
    device: str | None = None,
    *,
    placement: Placement | None = None,
) -> Iterator[Index]:
    """Open an index for a search, and close it afterwards; print on stderr whether a named GPU is used."""
    from engine.index import Index

    with Index.open(path, device=device, log=log, placement=placement) as index:
        if index.acceleration is not None:
            echo(index.acceleration.summary, err=True)
        yield index
