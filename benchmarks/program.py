"""A program: a command that prints errors of the engine as one line; and the origin of the records it writes."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from benchmarks.datasets import DATA
from engine.errors import EngineError
from indexer.origin import Origin, describe_origin

PLACES = frozenset(("data", "out", "work"))  # parameters that differ between machines


class Program(click.Command):
    """A command without tracebacks for errors that a user can act on."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EngineError as error:
            raise click.ClickException(str(error)) from error


class Task(Program):
    """A program whose runs have a case for each query, pair or document."""


ProgramT = TypeVar("ProgramT", bound=Program)


def program(function: Callable[..., None]) -> Program:
    """Make `main` of a module the study or verb with the name of the module: `python -m benchmarks study NAME`."""
    return _shown(click.command(cls=Program)(function))


def task(function: Callable[..., None]) -> Task:
    """Make `main` of a module the task with the name of the module: `python -m benchmarks run NAME`."""
    return _shown(click.command(cls=Task)(function))


def _shown(command: ProgramT) -> ProgramT:
    """Show the defaults of options in the help, except of flags, folders and empty texts."""
    for option in command.params:
        is_plain = not isinstance(option.default, bool) and isinstance(option.default, str | int | float)
        if isinstance(option, click.Option) and option.show_default is None and is_plain and option.default != "":
            option.show_default = True
    return command


def origin_of(context: click.Context, seed: int) -> Origin:
    """The origin of the records of this call; its command leaves out `PLACES`."""
    assert context.command.callback is not None
    name = Path(inspect.getfile(inspect.unwrap(context.command.callback))).stem
    verb = "run" if isinstance(context.command, Task) else "study"
    return describe_origin(command_line(f"{verb} {name}", context, leave_out=PLACES), seed)


def command_line(name: str, context: click.Context, leave_out: Collection[str]) -> str:
    """The command line of this call, without the parameters in `leave_out`; of a path only the last part."""
    words: list[str] = []
    for parameter in context.command.params:
        of = parameter.name or ""
        given = context.get_parameter_source(of) is ParameterSource.COMMANDLINE
        if given and of not in leave_out:
            words += _words(parameter, context.params[of])
    return shlex.join(["python", "-m", "benchmarks", *name.split(), *words])


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
    """A value as text: of a path only the last part, of an address only the scheme."""
    word = str(value)
    if "://" in word:
        return word.partition("://")[0] + "://..."
    return Path(word).name or word if isinstance(value, Path) or _is_place(word) else word


def _is_place(text: str) -> bool:
    """Whether a text is a path on this machine; names on a hub contain a slash too."""
    return "/" in text and (Path(text).is_absolute() or Path(text).exists())


WORK = Path(__file__).resolve().parent / ".work"  # folder of indexes, which are kept and resumed

data_option = click.option(
    "--data", default=DATA, type=click.Path(path_type=Path), help="Folder that holds the datasets."
)


def log(line: str) -> None:
    """Print a line of progress to standard error."""
    click.echo(line, err=True)


def names_of(known: Collection[str]) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    """A callback that reads names of `known`, separated by commas, without duplicates."""

    def read(_context: click.Context, _parameter: click.Parameter, names: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
        if unknown := [name for name in chosen if name not in known]:
            raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return chosen

    return read


def read_numbers(_context: click.Context, _parameter: click.Parameter, numbers: str | None) -> tuple[int, ...]:
    """A callback that reads whole numbers from 1 on, separated by commas, without duplicates; () without the option."""
    if numbers is None:
        return ()
    if not all(number.strip().isdecimal() and int(number) > 0 for number in numbers.split(",")):
        raise click.BadParameter(f"{numbers!r} must be whole numbers from 1 on, separated by commas")
    return tuple(dict.fromkeys(int(number) for number in numbers.split(",")))
