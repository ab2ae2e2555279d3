"""Arguments and options that several commands share, and the exit statuses."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.remote.address import ServerAddress
from engine.store.address import Address, index_place, is_address

if TYPE_CHECKING:
    from engine import Index
    from engine.remote.exchange import Channel

_TYPED = "longmatch.arguments"
FAILED, PARTLY = 1, 3  # 0 is done, and click itself exits with 2 on wrong usage


class IndexType(click.Path):
    """A folder, or the address of an index on a server."""

    def __init__(self, *, exists: bool = False) -> None:
        """Accept a folder or an address; with `exists`, refuse a folder that does not exist."""
        super().__init__(file_okay=False, exists=exists, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """A `Path`; for an address, an `Address` or a `ServerAddress`."""
        name = os.fspath(value)
        return index_place(name) if is_address(name) else super().convert(value, param, ctx)


def _writable(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse the address of a server: these commands need the files of an index."""
    if isinstance(path, ServerAddress):
        raise click.ClickException(
            f"{path} is served by another process, and this command needs the files of INDEX; run it where the "
            "folder is"
        )
    return path


def _folder(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    """Refuse an address where files are read or written."""
    if isinstance(path, Address):
        raise click.ClickException(
            f"{context.info_name} works on the files of a folder, and {path} is on a server, which keeps its data "
            "itself; copy the index into a folder: longmatch partition INDEX FOLDER -p 1"
        )
    return _writable(context, parameter, path)


index_argument = click.argument("index", type=IndexType(), callback=_writable)
folder_argument = click.argument("index", type=IndexType(), callback=_folder)


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
    if not isinstance(path, Address | ServerAddress) and not path.exists():
        raise click.ClickException(f"{path} holds no index; make one: longmatch index {path} PATH...")
    return path


existing_index_argument = click.argument("index", type=IndexType(), callback=_existing)
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
    timeout: float | None = None,
    is_partial: bool = False,
    channel: Channel | None = None,
) -> Iterator[Index]:
    """Open an index for a search, and close it afterwards; print on stderr whether a named GPU is used.

    Args:
        path: folder or address.
        device: device for encoding and searching.
        timeout: seconds in which a served partition must answer each round.
        is_partial: whether served partitions that do not answer are left out.
        channel: channel to partitions that are not reached over HTTP.
    """
    from engine.index import Index
    from engine.remote.exchange import SECONDS, Access

    access = Access(SECONDS if timeout is None else timeout, is_partial, channel=channel)
    with Index.open(path, device=device, log=lambda line: click.echo(line, err=True), access=access) as index:
        if index.acceleration is not None:
            click.echo(index.acceleration.summary, err=True)
        yield index
