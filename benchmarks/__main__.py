"""`python -m benchmarks PROGRAM`: every program of this folder under one command, imported when it is asked for.

A program is a module of this folder with a `main` under `@program`; `python -m benchmarks.PROGRAM` runs it alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path

import click

_FOLDER = Path(__file__).resolve().parent


class Programs(click.Group):
    """The programs of a folder, known by their source; help imports none of them."""

    @cached_property
    def help_lines(self) -> dict[str, str]:
        """The first line of each program's help, by name."""
        paths = sorted(path for path in _FOLDER.glob("*.py") if not path.name.startswith("_"))
        found = {path.stem: _summary(ast.parse(path.read_text("utf-8"))) for path in paths}
        return {name: summary for name, summary in found.items() if summary is not None}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in their order."""
        return list(self.help_lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one program."""
        if cmd_name not in self.help_lines:
            return None
        program = import_module(f"benchmarks.{cmd_name}").main
        assert isinstance(program, click.Command)
        return program

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line for each program, out of its source."""
        rows: Sequence[tuple[str, str]] = list(self.help_lines.items())
        with formatter.section("Programs"):
            formatter.write_dl(rows)


def _summary(module: ast.Module) -> str | None:
    """The first line of the docstring of the command `main`; None where there is no such command."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main" and any(map(_is_command, node.decorator_list)):
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return None


def _is_command(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) == "program"


@click.command(cls=Programs)
def main() -> None:
    """Measure systems, and draw what was measured.

    \b
    Example:
        python -m benchmarks list
        python -m benchmarks retrieval proposals --encoder mean
        python -m benchmarks retrieval --help
    """


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
