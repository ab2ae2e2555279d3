"""Options under headings, in the `--help` of commands with many options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any] | click.Command)


class _GroupedOption(click.Option):
    """An option that is listed under a heading; a number is shown as N, without its range."""

    def __init__(self, *arguments: Any, heading: str, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        self.heading = heading
        if self.metavar is None and isinstance(self.type, click.types.IntParamType | click.types.FloatParamType):
            self.metavar = "N"

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Leave out the range; the error about a wrong number names it."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class GroupedCommand(click.Command):
    """Lists its options by their headings, in the order in which they were declared."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                rows.setdefault(getattr(parameter, "heading", "Help"), []).append(row)
        for heading, own in rows.items():
            with formatter.section(heading):
                formatter.write_dl(own)


def heading(text: str) -> Callable[..., Callable[[DecoratedT], DecoratedT]]:
    """`click.option` under a heading."""
    return partial(click.option, cls=_GroupedOption, heading=text)


def together(*options: Callable[[DecoratedT], DecoratedT]) -> Callable[[DecoratedT], DecoratedT]:
    """Several options as one decorator, in the order in which they are listed."""

    def decorate(command: DecoratedT) -> DecoratedT:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate
