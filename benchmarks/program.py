"""A program: a command that prints errors of the engine as one line, and the origin of its records."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.origin import command_line
from engine.errors import EngineError
from indexer.training.origin import Origin, describe_origin

PLACES = frozenset(("data", "out", "plot_out", "work"))  # parameters that differ between machines


class Program(click.Command):
    """A command without tracebacks for errors that a user can act on."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Run the command.

        Raises:
            ClickException: the command raised an error of the engine; the message is the same.
        """
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(str(error)) from error


def program(function: Callable[..., None]) -> Program:
    """Make `main` of a module the program of its name."""
    return click.command(cls=Program)(function)


def origin_of(context: click.Context, seed: int) -> Origin:
    """The origin of the records of this call; its command leaves out `PLACES`."""
    assert context.command.callback is not None
    name = Path(inspect.getfile(inspect.unwrap(context.command.callback))).stem
    return describe_origin(command_line(f"benchmarks.{name}", context, leave_out=PLACES), seed)
