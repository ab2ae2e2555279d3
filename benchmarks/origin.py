"""The command that made a record, in the words of its command line."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from pathlib import Path

import click
from click.core import ParameterSource


def command_line(module: str, context: click.Context, leave_out: Collection[str]) -> str:
    """The command that was given, without the parameters in `leave_out`: folders of one machine."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in leave_out:
            words += _words(parameter, context.params[name])
    return shlex.join(["python", "-m", module, *words])


def _words(parameter: click.Parameter, value: object) -> Iterable[str]:
    if isinstance(parameter, click.Argument):
        return [Path(value).name if isinstance(value, Path) else str(value)]
    option = max(parameter.opts, key=len)
    return [option] if value is True else [option, ",".join(value) if isinstance(value, tuple) else str(value)]
