"""Options that several programs share: the folder of data, lists of names or numbers; and progress on stderr."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import click

from benchmarks.datasets import DATA

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
