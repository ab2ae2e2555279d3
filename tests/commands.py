"""The commands of the command line by their full names (`query`, `upkeep verify`), and a function that runs them."""

from collections.abc import Iterator, Sequence

import click
from click.testing import CliRunner, Result

from indexer.cli import main


def _leaves(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _leaves(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(_leaves(main))


def parse(words: Sequence[str]) -> None:
    """Parse a command line, without its first word `longmatch`, and run nothing.

    Raises:
        KeyError: there is no such command.
        click.UsageError: the arguments are wrong.
    """
    n_words = 2 if words[0] in main.commands and isinstance(main.commands[words[0]], click.Group) else 1
    name = " ".join(words[:n_words])
    COMMANDS[name].make_context(name, list(words[n_words:]))


def run(*words: object, stdin: str | bytes | None = None) -> Result:
    """Run a command line, without its first word `longmatch`."""
    return CliRunner().invoke(main, list(map(str, words)), input=stdin)


def succeed(*words: object, stdin: str | bytes | None = None) -> Result:
    """Run a command line that must end with status 0."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result
