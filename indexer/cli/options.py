"""Arguments and options that several commands share, as `--help` lists them, and the exit statuses.

The options of a search are made from the fields of `Request`.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.environment import check_extra
from engine.errors import QueryError
from engine.store.catalog import holds_index
from indexer.cli.terminal import log

if TYPE_CHECKING:
    from engine import Index
    from engine.search.partition import Placement
    from engine.search.request import Parameter

DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any] | click.Command)


class _Option(click.Option):
    """An option whose number is shown as N, without its range."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        if self.metavar is None and isinstance(self.type, click.types.IntParamType | click.types.FloatParamType):
            self.metavar = "N"

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Leave out the range; the error about a wrong number names it."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=_Option)


class GroupedCommand(click.Command):
    """Lists its options by headings, in the order in which they were declared.

    `headings` has the heading that begins at each of some parameters.
    """

    def __init__(self, *arguments: Any, headings: Mapping[str, str], **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        self._headings = headings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        rows: dict[str, list[tuple[str, str]]] = {}
        heading = "Options"
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                heading = "Help" if "--help" in parameter.opts else self._headings.get(parameter.name or "", heading)
                rows.setdefault(heading, []).append(row)
        for heading, options in rows.items():
            with formatter.section(heading):
                formatter.write_dl(options)


def together(*options: Callable[[DecoratedT], DecoratedT]) -> Callable[[DecoratedT], DecoratedT]:
    """Several options as one decorator, in the order in which they are listed."""

    def decorate(command: DecoratedT) -> DecoratedT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


TYPED = "longmatch.arguments"  # of a context: the arguments of the whole command
FAILED, PARTLY = 1, 3  # 0 is done, and click itself exits with 2 on wrong usage


index_argument = click.argument("index", type=click.Path(file_okay=False, path_type=Path))


def collected(**kinds: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command one argument of a dataclass in place of the options that are named as its fields."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_values(**values: Any) -> Any:  # noqa: ANN401
            for name, kind in kinds.items():
                names = [field.name for field in fields(kind) if field.name in values]
                values[name] = kind(**{field: values.pop(field) for field in names})
            return command(**values)

        return with_values

    return decorate


class OrderedGroup(click.Group):
    """Lists its commands in the order in which a user needs them, not in alphabetical order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, as they were added."""
        return list(self.commands)


def typed_command() -> str:
    """The command as it was typed, quoted for a shell; "" outside of a command."""
    context = click.get_current_context(silent=True)
    arguments = () if context is None else context.meta.get(TYPED, ())
    return shlex.join(["longmatch", *arguments]) if arguments else ""


def _existing(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse a folder without an index before anything is loaded."""
    if not holds_index(path):
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
def opened_index(path: Path, device: str | None = None, *, placement: Placement | None = None) -> Iterator[Index]:
    """Open an index for a search, and close it afterwards; print on stderr whether a named GPU is used."""
    from engine.index import Index

    with Index.open(path, device=device, log=log, placement=placement) as index:
        if index.acceleration is not None:
            log(index.acceleration.summary)
        yield index


def request_options(*names: str, **defaults: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options, and give the command a `Request` as its argument `request`.

    `names` are those of fields, in the order of the options, by default all that a command can change; `defaults` are
    those of this command, where they are not those of `Request`.
    """
    from engine.search.request import Request, parameters  # loads numpy, which other commands do not need

    by_name = {one.name: one for one in parameters() if not one.about.is_constant}
    chosen = [by_name[name] for name in names or by_name]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_request(**values: Any) -> Any:  # noqa: ANN401
            given = {one.name: values.pop(one.name) for one in chosen}
            try:
                request = Request.of(**given)
            except QueryError as error:
                raise click.UsageError(str(error)) from error
            return command(request=request, **values)

        for parameter in reversed(chosen):
            with_request = _option(parameter, defaults.get(parameter.name, parameter.default))(with_request)
        return with_request

    return decorate


def _option(parameter: Parameter, default: object) -> Callable[[DecoratedT], DecoratedT]:
    """The option of one field."""
    about = parameter.about
    option = about.option or f"--{parameter.name.replace('_', '-')}"
    text, settings = about.text, dict[str, Any]()
    if parameter.kind is bool:
        settings["is_flag"] = True
    elif parameter.kind is tuple:
        text = f"{text[:-1]}; may be repeated."
        settings |= {"multiple": True, "metavar": about.value}
    elif issubclass(parameter.kind, Mapping):
        settings |= {"multiple": True, "metavar": about.value, "callback": _weights}
    else:
        settings |= {"metavar": about.value, "default": default, "show_default": default is not None}
    is_number = parameter.kind in (int, float)
    if about.choices and not is_number:
        settings["type"] = click.Choice([*map(str, about.choices)])
        settings["default"] = str(default) if isinstance(default, StrEnum) else default
    elif is_number and not about.choices:  # `Request` reads a number or a choice
        number: Any = click.IntRange if parameter.kind is int else click.FloatRange
        settings |= {"type": number(about.least, about.most), "metavar": about.value or "N"}
    return click.option(option, parameter.name, help=text, **settings)


def _weights(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    from engine.search.request import parse_weights

    try:
        return parse_weights(",".join(given)) if given else {}
    except QueryError as error:
        raise click.BadParameter(str(error)) from error


def ray_option(purpose: str) -> Callable[[DecoratedT], DecoratedT]:
    """`--ray`."""
    places = "local starts one on this machine, auto is the one that this machine belongs to, HOST:PORT names its head."
    return option("--ray", "ray_address", metavar="ADDRESS", help=f"{purpose} a Ray cluster: {places}")


@contextmanager
def placed_partitions(index: Path, ray_address: str | None) -> Iterator[Placement | None]:
    """Run the partitions of an index as actors of a Ray cluster inside the context; None without an address.

    Raises:
        MissingExtra: Ray is not installed.
        EngineError: there is no such cluster, or the index is not partitioned.
    """
    if ray_address is None:
        yield None
        return
    check_extra("ray", "--ray", "Ray", "ray")
    from engine.store.catalog import partition_folders, read_manifest
    from indexer.cluster.session import connected

    parts = list(partition_folders(index, read_manifest(index)))  # before Ray is started, which takes seconds
    with connected(ray_address):
        from indexer.cluster.partitions import PartitionActors  # imports Ray, which was set up by `connected`

        with closing(PartitionActors(parts)) as actors:
            yield actors
