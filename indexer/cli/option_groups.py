"""Options as `--help` lists them: under headings, without the ranges of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import click

DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any] | click.Command)


class _Option(click.Option):
    """An option that is listed under a heading; a number is shown as N, without its range."""

    def __init__(self, *arguments: Any, heading: str | None = None, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        self.heading = heading
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

    `headings` has the names of parameters by heading; other options have the heading that they were declared with.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401
        headings: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **settings)
        self._heading_of = {name: heading for heading, names in (headings or {}).items() for name in names}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                declared = getattr(parameter, "heading", None) or "Help"
                rows.setdefault(self._heading_of.get(parameter.name or "", declared), []).append(row)
        for heading, options in rows.items():
            with formatter.section(heading):
                formatter.write_dl(options)


def heading(text: str) -> Callable[..., Callable[[DecoratedT], DecoratedT]]:
    """`click.option` under a heading."""
    return partial(click.option, cls=_Option, heading=text)


def together(*options: Callable[[DecoratedT], DecoratedT]) -> Callable[[DecoratedT], DecoratedT]:
    """Several options as one decorator, in the order in which they are listed."""

    def decorate(command: DecoratedT) -> DecoratedT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
