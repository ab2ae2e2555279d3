"""Lists corpora, tasks and studies on one screen, with the number of their runs and the changes since."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from benchmarks.__main__ import STUDIES, TASKS, Programs
from benchmarks.datasets import TASKS as CORPORA
from benchmarks.program import data_option, program
from benchmarks.runs import CHECKOUT, RESULTS, read_header, run_files

_IMPORT = re.compile(r"^\s*from ((?:benchmarks|engine|indexer|longmatch)[\w.]*) import (\w+)", re.MULTILINE)
_WORDS = re.compile(r"python -m benchmarks (?:run|study) (\w+)")


def program_of(values: Mapping[str, Any]) -> str:
    """The program that wrote a run."""
    words = _WORDS.match(values["origin"]["command"])
    return words[1] if words else str(values.get("task", ""))


def _corpora(data: Path) -> list[str]:
    places = {name: data / corpus.folder / "corpus.jsonl.gz" for name, corpus in CORPORA.items()}
    return ["Corpora", *(f"  {name:<39}{'here' if place.is_file() else 'to fetch'}" for name, place in places.items())]


def _programs(title: str, group: Programs, headers: Sequence[Mapping[str, Any]]) -> list[str]:
    counts = Counter(map(program_of, headers))
    lines = ["", f"{title:<41}{'runs':>5}  changed since"]
    for name, (module, _) in group.modules.items():
        changed = _n_changed(_changes_since(name, module, headers))
        lines.append(f"  {name:<39}{counts[name] or '':>5}  {changed}".rstrip())
    return lines


def _changes_since(name: str, module: str, headers: Sequence[Mapping[str, Any]]) -> dict[str, list[str] | None]:
    """The changes in the code of a program since its runs, by their commits."""
    paths = tuple(code_of(module))
    commits = sorted({values["origin"]["commit"] for values in headers if program_of(values) == name})
    return {commit: changes(commit, paths) for commit in commits}


def _n_changed(changes_by_commit: Mapping[str, Sequence[str] | None]) -> str:
    """The most files that changed since a commit; "unknown" if the history lacks all commits."""
    counts = [max(len(lines) - 1, 0) for lines in changes_by_commit.values() if lines is not None]
    return f"{max(counts)} files" if counts else "unknown" if changes_by_commit else ""


@program
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of runs.")
@click.argument("name", required=False)
@data_option
def main(name: str, results: Path, data: Path) -> None:
    """List corpora, tasks and studies, how many runs they have, and how much of their code changed since.

    With the NAME of a task or study, list the code that changed since its runs.

    \b
    Example:
        python -m benchmarks list --data data/
        python -m benchmarks list retrieval
    """
    headers = [read_header(path) for path in run_files(results)]
    if name:
        _echo_changes(name, headers)
        return
    lines = [
        *_corpora(data),
        *_programs("Tasks: python -m benchmarks run NAME", TASKS, headers),
        *_programs("Studies: python -m benchmarks study NAME", STUDIES, headers),
        "Corpora: python -m benchmarks fetch NAME --to FOLDER, then --data FOLDER. Options: run NAME --help",
    ]
    click.echo("\n".join(lines))


def _echo_changes(name: str, headers: Sequence[Mapping[str, Any]]) -> None:
    modules = {**TASKS.modules, **STUDIES.modules}
    if name not in modules:
        raise click.BadParameter(f"no task or study is named {name!r}; python -m benchmarks list shows all")
    for commit, lines in _changes_since(name, modules[name][0], headers).items():
        unchanged = " unknown: the history lacks this commit" if lines is None else " nothing changed"
        click.echo("\n".join([f"since {commit[:10]}:", *(lines or [unchanged])]))


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
