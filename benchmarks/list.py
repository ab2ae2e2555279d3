"""Lists tasks, systems and studies on one screen, with the minutes of their records and the data to fetch."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.__main__ import STUDIES, TASKS, Programs
from benchmarks.datasets import TASKS as CORPORA
from benchmarks.freshness import changes, code_of
from benchmarks.markdown import present
from benchmarks.options import data_option
from benchmarks.program import program
from benchmarks.runs import RESULTS, read_header, run_files
from benchmarks.tasks.retrieval import ALL_SYSTEMS, OF_ENCODERS

_CORPUS, _INDEX = "a corpus", "an index"
# What each program needs besides this checkout; a program that is not listed needs nothing.
NEEDS: Mapping[str, str] = {
    **dict.fromkeys(("retrieval", "architectures", "faithfulness", "planted"), _CORPUS),
    "on_demand": _CORPUS,
    **dict.fromkeys(("search", "growth"), _INDEX),
    "pairs": f"{_CORPUS}, or a file of pairs",
    "summaries": "clscisumm with its citances",
    "probe": f"news20 or bbc_news; {_CORPUS}",
    "facets": "csfcube",
    "peers": f"{_CORPUS}, the extra peers",
    "encode": f"{_CORPUS}, the extra peers",
}
_ENCODING = "encoding first"  # row: time that systems with an encoder need first, where no index is kept
_WORDS = re.compile(r"python -m benchmarks (?:run|study) (\w+)")


def read_values(folder: Path) -> list[dict[str, Any]]:
    """The headers of the runs of a folder."""
    return [read_header(path) for path in run_files(folder)]


def program_of(values: Mapping[str, Any]) -> str:
    """The program that wrote a record or a run."""
    words = _WORDS.match(present(values["origin"]["command"]))
    return words[1] if words else str(values.get("kind", ""))


def seconds_of(values: Mapping[str, Any]) -> float | None:
    """The duration of the measurement of a record or run, in seconds; None where it has none."""
    match values:
        case {"fit_seconds": fit, "seconds": seconds}:
            return float(fit + seconds)
        case {"seconds": int() | float() as seconds}:
            return float(seconds)
    return None


def system_minutes(runs: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Minutes of runs over whole test queries, by system and corpus; of several runs the longest."""
    found: dict[tuple[str, str], float] = {}
    for header in runs:
        if header.get("task") != "retrieval" or header["split"] != "test" or header["variant"]:
            continue
        system, corpus = header["system"], header["dataset"].partition("@")[0]
        spent = {system: header["seconds"]}
        if system not in OF_ENCODERS:
            spent[system] += header["fit_seconds"]
        elif header["n_tokens"]:
            spent[_ENCODING] = header["fit_seconds"]
        for name, seconds in spent.items():
            found[name, corpus] = max(found.get((name, corpus), 0.0), seconds / 60)
    return found


def _minutes(low: float, high: float) -> str:
    texts = ["<0.1" if value < 0.1 else f"{value:.1f}" if value < 10 else f"{value:.0f}" for value in (low, high)]
    return " to ".join(dict.fromkeys(texts))


def _systems(records: Sequence[Mapping[str, Any]], data: Path) -> list[str]:
    spent = system_minutes(records)
    places = {name: data / corpus.folder / "corpus.jsonl.gz" for name, corpus in CORPORA.items()}
    lines = [
        _row("", {name: name for name in CORPORA}),
        _row("corpus", {name: "here" if place.is_file() else "to fetch" for name, place in places.items()}),
    ]
    for system in (_ENCODING, *ALL_SYSTEMS):
        times = {corpus: spent[system, corpus] for corpus in CORPORA if (system, corpus) in spent}
        lines.append(_row(system, {corpus: _minutes(time, time) for corpus, time in times.items()}))
    return lines


def _row(name: str, cells: Mapping[str, str]) -> str:
    padded = [cells.get(corpus, "").ljust(len(corpus)) for corpus in CORPORA]
    return f"  {name:<16}{'  '.join(padded)}".rstrip()


def _programs(title: str, group: Programs, records: Sequence[Mapping[str, Any]]) -> list[str]:
    spent: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for values in records:
        name = program_of(values)
        counts[name] += 1
        if seconds := seconds_of(values):
            spent[name].append(seconds / 60)
    lines = ["", f"{title:<41}{'records':>8}  {'minutes each':<14}{'changed':<10}needs"]
    for name, (module, _) in group.modules.items():
        minutes = _minutes(min(spent[name]), max(spent[name])) if spent[name] else ""
        changed = _n_changed(_changes_since(name, module, records))
        row = f"  {name:<39}{counts[name] or '':>8}  {minutes:<14}{changed:<10}{NEEDS.get(name, '')}"
        lines.append(row.rstrip())
    return lines


def _changes_since(name: str, module: str, records: Sequence[Mapping[str, Any]]) -> dict[str, list[str] | None]:
    """The changes in the code of a program since its records, by their commits."""
    paths = tuple(code_of(module))
    commits = sorted({values["origin"]["commit"] for values in records if program_of(values) == name})
    return {commit: changes(commit, paths) for commit in commits}


def _n_changed(changes_by_commit: Mapping[str, Sequence[str] | None]) -> str:
    """The most files that changed since a commit; "unknown" if the history lacks all commits."""
    counts = [max(len(lines) - 1, 0) for lines in changes_by_commit.values() if lines is not None]
    return f"{max(counts)} files" if counts else "unknown" if changes_by_commit else ""


@program
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of records and runs.")
@click.argument("name", required=False)
@data_option
def main(name: str, results: Path, data: Path) -> None:
    """List tasks, systems and studies, the minutes of their records, and what must be fetched.

    With the NAME of a task or study, list the code that changed since its records.

    \b
    Example:
        python -m benchmarks list --data data/
        python -m benchmarks list retrieval
    """
    records = read_values(results)
    if name:
        _echo_changes(name, records)
        return
    machines = sorted({f"{values['origin']['machine']['cores']} cores" for values in records})
    on = f" on {' or '.join(machines)}" if machines else ""
    lines = [
        f"Systems of retrieval, minutes of a recorded run{on}",
        *_systems(records, data),
        *_programs("Tasks: python -m benchmarks run NAME", TASKS, records),
        *_programs("Studies: python -m benchmarks study NAME", STUDIES, records),
        "Corpora: python -m benchmarks fetch NAME --to FOLDER, then --data FOLDER. Options: run NAME --help",
    ]
    click.echo("\n".join(lines))


def _echo_changes(name: str, records: Sequence[Mapping[str, Any]]) -> None:
    modules = {**TASKS.modules, **STUDIES.modules}
    if name not in modules:
        raise click.BadParameter(f"no task or study is named {name!r}; python -m benchmarks list shows all")
    for commit, lines in _changes_since(name, modules[name][0], records).items():
        unchanged = " unknown: the history lacks this commit" if lines is None else " nothing changed"
        click.echo("\n".join([f"since {commit[:10]}:", *(lines or [unchanged])]))
