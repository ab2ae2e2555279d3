"""The options of commands that search, made from the fields of `Request`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import click

from engine.errors import QueryError
from engine.search.request import Parameter, Request, parameters, parse_weights

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def request_options(*names: str, **defaults: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options, and give the command a `Request` as its argument `request`.

    Args:
        names: of the fields, in the order of the options; by default all that a command can change.
        defaults: of this command, where they are not those of `Request`.
    """
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


def _option(parameter: Parameter, default: object) -> Callable[[CommandT], CommandT]:
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
    try:
        return parse_weights(",".join(given)) if given else {}
    except QueryError as error:
        raise click.BadParameter(str(error)) from error
