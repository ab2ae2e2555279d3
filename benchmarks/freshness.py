"""The changes since a run: `git diff --stat` from its commit, over the code that its program imports."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^\s*from ((?:benchmarks|engine|indexer|longmatch)[\w.]*) import (\w+)", re.MULTILINE)


def code_of(module: str) -> list[str]:
    """The files of benchmarks that a module imports, itself included, and the rooms of the product that they import.

    A room is a folder of a package, or a file at its top.
    """
    files, rooms, rest = set[Path](), set[Path](), [_file(module)]
    while rest:
        path = rest.pop()
        if path.relative_to(CHECKOUT).parts[0] != "benchmarks":
            rooms.add(CHECKOUT.joinpath(*path.relative_to(CHECKOUT).parts[:2]))
        elif path not in files:
            files.add(path)
            rest += _imported(path)
    return sorted(str(path.relative_to(CHECKOUT)) for path in files | rooms)


@cache
def changes(commit: str, paths: Iterable[str], checkout: Path = CHECKOUT) -> list[str] | None:
    """The lines of `git diff --stat` from a commit, [] if nothing changed; None if the history lacks the commit."""
    command = ["git", "diff", "--stat=110", commit, "--", *paths]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.splitlines()


def _imported(path: Path) -> list[Path]:
    found = _IMPORT.findall(path.read_text("utf-8"))
    return [_file(f"{module}.{name}") if _is_module(f"{module}.{name}") else _file(module) for module, name in found]


def _file(module: str) -> Path:
    path = CHECKOUT.joinpath(*module.split("."))
    file = path.with_suffix(".py")  # beside which the folder of a package that became a file can be left
    return file if file.is_file() else path


def _is_module(module: str) -> bool:
    return _file(module).exists()
