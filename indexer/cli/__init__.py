"""The `longmatch` command, the group of all commands; turns errors into one line and an exit status.

Each command opens an index, calls one function and prints the result. INDEX comes first, except in `restore`.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

import click

from engine.environment import refuse_windows
from engine.errors import EngineError, faults_named
from engine.text.cleaning import safe
from indexer.cli.options import TYPED, OrderedGroup
from indexer.cli.terminal import LOG_OPTION, Interrupted, json_log

_COMMANDS = {  # the module of each, and its line in the list, which is shown without loading the module
    "index": ("index", "Create or update an index from files and folders."),
    "query": ("query", "Find the documents that match a document, and show why."),
    "watch": ("query", "Print hits that no earlier run printed."),
    "show": ("show", "Show what an index holds, or one of its documents."),
    "compare": ("compare", "Show which sections of two documents match."),
    "chart": ("compare", "Chart a document against its closest documents, part by part."),
    "pairs": ("compare", "List pairs of documents that overlap, best first."),
    "replay": ("replay", "Repeat the searches of a result file, and compare."),
    "diff": ("replay", "Search two indexes with the same documents, and compare."),
    "serve": ("serve", "Serve an index over HTTP: a search page and an API."),
    "mcp": ("serve", "Serve an index to a language model over MCP."),
    "export": ("show", "Write documents, sections or vectors to a file."),
    "plot": ("show", "Draw a map of an index, with its documents as points."),
    "remove": ("upkeep", "Remove documents from an index."),
    "upkeep": ("upkeep", "Check, repair, shrink, back up or split an index."),
    "doctor": ("upkeep", "Report what is installed; with --deep, try it."),
    "train": ("train", "Train an encoder."),
}

_COLLECTED_AFTER = 50_000  # new containers; with Python's default of 700, a fifth of the start is garbage collection
_UNUSED = "openvino.tools.ovc"  # converts models; OpenVINO goes on without it, and loads in half the time


class _Commands(OrderedGroup):
    """Turns the errors raised on purpose into one line and exit status 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they were typed, for reports that state their command."""
        ctx.meta[TYPED] = tuple(args)
        with _clean_errors():
            return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run the command line; with --log-json, errors that click prints are JSON too."""
        if args is None:
            _open_streams()
        given = list(sys.argv[1:] if args is None else args)
        with json_log() if given[:1] == [LOG_OPTION] else nullcontext():
            try:
                return super().main(given, *rest, **options)
            finally:
                if args is None:
                    signal.signal(signal.SIGINT, signal.SIG_DFL)
                    gc.freeze()  # the process ends, and would search all its objects for garbage

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        gc.set_threshold(_COLLECTED_AFTER)
        sys.modules.setdefault(_UNUSED, None)  # type: ignore[arg-type]  # what cannot be imported
        try:
            refuse_windows()
            with _clean_errors(), faults_named():
                return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(safe(str(error))) from error
        except UnicodeEncodeError as error:  # bytes of an argument that are not UTF-8
            reason = f"{error.object!r:.200} is not UTF-8; names of documents are: longmatch show INDEX --documents"
            raise click.ClickException(reason) from error


def _open_streams() -> None:
    """Open what is closed of standard input, output and error; a file of the index would get its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        setattr(sys, ("stdin", "stdout", "stderr")[number], os.fdopen(number, "w" if number else "r"))
    os.close(number)


@contextmanager
def _clean_errors() -> Iterator[None]:
    """Print an interrupt as an error, and make the messages of wrong usage safe: they repeat what was typed."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("committed documents are safe, run the same command to continue") from None
    except click.exceptions.NoArgsIsHelpError:
        raise  # its message is the help, of many lines
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
        command: click.Command = getattr(import_module(f"indexer.cli.{_COMMANDS[name][0]}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@click.group(cls=_Commands, commands=_OnDemand(), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="longmatch")
@click.option(
    LOG_OPTION, is_flag=True, expose_value=False, help="Progress and errors as JSON lines; before the command."
)
def main() -> None:
    """Find long documents with long documents, and see why.

    Exit status: 0 done, 1 error, 2 wrong usage, 3 done but some documents failed, 130 interrupted.
    """
