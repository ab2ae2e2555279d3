"""The command that made a record, in the words of its command line."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import click
from click.core import ParameterSource


def command_line(module: str, context: click.Context, leave_out: Collection[str]) -> str:
    """The command that was given, without the parameters in `leave_out`; of a path its last part alone."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in leave_out:
            words += _words(parameter, context.params[name])
    return shlex.join(["python", "-m", module, *words])


def _words(parameter: click.Parameter, value: object) -> Iterable[str]:
    if isinstance(parameter, click.Argument):
        return map(_word, value) if isinstance(value, tuple) else [_word(value)]
    option = max(parameter.opts, key=len)
    if value is True:
        return [option]
    if isinstance(value, Mapping):
        return [option, ",".join(f"{name}={_word(one)}" for name, one in value.items())]
    if not isinstance(value, tuple):
        return [option, _word(value)]
    if isinstance(parameter, click.Option) and parameter.multiple:
        return [word for one in value for word in (option, _word(one))]
    return [option, ",".join(map(_word, value))]


def _word(value: object) -> str:
    """A value; of a path its last part alone."""
    word = str(value)
    return Path(word).name or word if isinstance(value, Path) or _is_place(word) else word


def _is_place(text: str) -> bool:
    """Whether a text is a path here; names on a hub have a slash in them too."""
    return "/" in text and (Path(text).is_absolute() or Path(text).exists())
