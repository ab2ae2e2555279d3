"""The group of all commands; turns errors into one line and an exit status."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

import click

from engine.environment import refuse_windows
from engine.errors import EngineError, faults_named
from engine.text.outside import safe
from indexer.cli.options import OrderedGroup, keep_arguments
from indexer.cli.terminal import LOG_OPTION, json_log

_MODULES = {
    **{name: name for name in ("index", "query", "watch", "show", "compare", "chart", "pairs", "replay")},
    **{"diff": "replay", "serve": "serve", "mcp": "serve", "export": "show", "plot": "plot", "remove": "upkeep"},
    **{"upkeep": "upkeep", "doctor": "upkeep", "train": "train"},
}

_COLLECTED_AFTER = 50_000  # new containers; with Python's default of 700, a fifth of the start is garbage collection


class _Commands(OrderedGroup):
    """Turns the errors raised on purpose into one line and exit status 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, for reports that state their command."""
        keep_arguments(ctx, args)
        with _safe_messages():
            return super().parse_args(ctx, args)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run the command line; with --log-json, errors that click prints are JSON too."""
        given = list(sys.argv[1:] if args is None else args)
        with json_log() if given[:1] == [LOG_OPTION] else nullcontext():
            return super().main(given, *rest, **options)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run a command; see the class."""
        gc.set_threshold(_COLLECTED_AFTER)
        try:
            refuse_windows()
            with _safe_messages(), faults_named():
                return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(safe(str(error))) from error
        except KeyboardInterrupt:
            message = "interrupted; committed documents are safe, run the same command to continue"
            raise click.ClickException(message) from None


@contextmanager
def _safe_messages() -> Iterator[None]:
    """Make the messages of wrong usage safe: they repeat what was typed."""
    try:
        yield
    except click.ClickException as error:
        message = error.format_message()
        if safe(message) == message:
            raise
        if isinstance(error, click.UsageError):
            raise click.UsageError(safe(message), error.ctx) from error
        raise click.ClickException(safe(message)) from error


class _OnDemand(Mapping[str, click.Command]):
    """The commands by name, each in the module that is loaded when the command is needed."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = getattr(import_module(f"indexer.cli.{_MODULES[name]}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


@click.group(cls=_Commands, commands=_OnDemand(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="longmatch")
@click.option(
    LOG_OPTION, is_flag=True, expose_value=False, help="Progress and errors as JSON lines; before the command."
)
def main() -> None:
    """Find long documents with long documents, and see why.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 done but some documents failed.
    """
