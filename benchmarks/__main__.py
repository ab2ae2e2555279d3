"""`python -m benchmarks list | run TASK | study NAME | report | score RUN QRELS | fetch CORPUS`.

A task or study is a module with a `main` under `@task` or `@program`. It is imported when it runs; help reads
only its source.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module
from pathlib import Path

import click

_FOLDER = Path(__file__).resolve().parent
VERBS = ("list", "report", "score", "fetch")  # programs that are commands of their own
_COMMAND = re.compile(r'^@(task|program)$.*?^def main\(.*?^    (?:r?""")(.*?)$', re.MULTILINE | re.DOTALL)


class Programs(click.Group):
    """The programs under one decorator, found by their source without importing them."""

    def __init__(self, name: str, decorator: str, help: str) -> None:
        super().__init__(name, help=help)
        self._decorator = decorator

    @cached_property
    def modules(self) -> dict[str, tuple[str, str]]:
        """The module and the first line of its help, by name of the program."""
        found = {}
        for path in sorted(_FOLDER.rglob("*.py")):
            command = _COMMAND.search(path.read_text("utf-8"))
            if command and command[1] == self._decorator and path.stem not in VERBS:
                module = ".".join(path.relative_to(_FOLDER.parent).with_suffix("").parts)
                found[path.stem] = module, command[2]
        return dict(sorted(found.items()))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one program."""
        if cmd_name not in self.modules:
            return None
        return _main_of(self.modules[cmd_name][0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each program, from its source."""
        with formatter.section("Names"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.modules.items()])


class Benchmarks(click.Group):
    """The verbs; a verb that is a program is imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order in which they are needed."""
        return ["list", "run", "study", "report", "score", "fetch"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A group, or an imported program."""
        return _main_of(f"benchmarks.{cmd_name}") if cmd_name in VERBS else self.commands.get(cmd_name)


def _main_of(module: str) -> click.Command:
    program = import_module(module).main
    assert isinstance(program, click.Command)
    return program


TASKS = Programs("run", "task", "Measure systems on a task: a run for each, with an answer for every case.")
STUDIES = Programs("study", "program", "Measure speed, size, promises and comparisons: a record each.")


@click.command(cls=Benchmarks)
def main() -> None:
    """Measure systems, and draw what was measured.

    \b
    Example:
        python -m benchmarks list
        python -m benchmarks run retrieval proposals --systems words,tfidf,bm25
        python -m benchmarks study scale --help
    """


assert isinstance(main, click.Group)
main.add_command(TASKS)
main.add_command(STUDIES)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
