"""Lists on one screen what can be run: tasks, systems, studies, minutes by the records, and what must be fetched."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.datasets import TASKS
from benchmarks.options import data_option
from benchmarks.program import program
from benchmarks.record_file import RESULTS
from benchmarks.retrieval import ALL_SYSTEMS, OF_ENCODERS

# Programs, and what each needs beside this checkout.
_CORPUS, _INDEX, _NOTHING = "a corpus", "an index", "nothing"
TASK_PROGRAMS = {
    "retrieval": _CORPUS,
    "rerank": _CORPUS,
    "matching": f"{_CORPUS}, or a file of pairs",
    "summaries": "clscisumm with its citances",
    "probes": "news20 or bbc_news",
    "citation_probes": _CORPUS,
    "facets": "csfcube",
    "faithfulness": _CORPUS,
    "planted": _CORPUS,
    "position_bias": _CORPUS,
    "boilerplate": f"{_CORPUS}, or a file of documents",
}
STUDIES = {
    **dict.fromkeys([f"papers_run {paper}" for paper in ("smith", "colde", "docsplit", "tde")], _CORPUS),
    "peers_run": f"{_CORPUS}, longmatch[peers]",
    "sample_sizes": _CORPUS,
    "on_demand": _CORPUS,
    "word_gaps": "two corpora",
    "buckets": "a corpus, records of retrieval",
}
SPEED = {
    "throughput": f"{_CORPUS}, longmatch[peers]",
    "ann": f"{_INDEX}, longmatch[ann]",
    "recall": _INDEX,
    "scale": _INDEX,
    "additions": _INDEX,
    "plans": _CORPUS,
    "memory": _NOTHING,
    "serving": _INDEX,
}
PROMISES = {
    "exactness": _INDEX,
    "stability": _INDEX,
    "kill": _NOTHING,
    "damage": _NOTHING,
    "fuzz_readers": _NOTHING,
    "first_minutes": _NOTHING,
}
GROUPS = {"Tasks": TASK_PROGRAMS, "Studies": STUDIES, "Speed and size": SPEED, "Promises": PROMISES}
OTHERS = ("fetch", "score", "training", "report", "figures", "list")
_ENCODING = "encoding first"  # the row of time that systems of an encoder need where no index is kept


def read_values(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder as they stand in their files."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def program_of(values: Mapping[str, Any]) -> str:
    """The program that wrote a record, with the paper of `papers_run`."""
    words = values["origin"]["command"].split()
    name = words[2].removeprefix("benchmarks.") if words[:2] == ["python", "-m"] else values["kind"]
    return f"{name} {words[3]}" if name == "papers_run" else name


def seconds_of(values: Mapping[str, Any]) -> float | None:
    """The time that a record says its measurement took; None where it does not."""
    match values:
        case {"build": {"seconds": build}, "search_seconds": search}:
            return float(build + search)
        case {"fit_seconds": fit, "score_seconds": score}:
            return float(fit + score)
        case {"fit_seconds": fit, "seconds_per_query": each, "query_ids": query_ids}:
            return float(fit + each * len(query_ids))
        case {"kind": kind, "seconds": int() | float() as seconds} if kind != "training":
            return float(seconds)
    return None


def system_minutes(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Minutes of whole test queries by system and task; the longest where there are several records."""
    found: dict[tuple[str, str], float] = {}
    for values in records:
        if values["kind"] != "retrieval" or values["split"] != "test" or values.get("part", "whole") != "whole":
            continue
        spent = {values["system"]: values["search_seconds"]}
        is_encoded = values["system"] in OF_ENCODERS
        if not is_encoded or values["build"]["n_tokens"]:
            spent[_ENCODING if is_encoded else "build"] = values["build"]["seconds"]
        if "build" in spent:
            spent[values["system"]] += spent.pop("build")
        for name, seconds in spent.items():
            key = name, values["task"]
            found[key] = max(found.get(key, 0.0), seconds / 60)
    return found


def _minutes(low: float, high: float) -> str:
    texts = ["<0.1" if value < 0.1 else f"{value:.1f}" if value < 10 else f"{value:.0f}" for value in (low, high)]
    return " to ".join(dict.fromkeys(texts))


def _systems(records: Sequence[Mapping[str, Any]], data: Path) -> list[str]:
    spent = system_minutes(records)
    places = {name: data / task.folder / "corpus.jsonl.gz" for name, task in TASKS.items()}
    lines = [
        _row("", {name: name for name in TASKS}),
        _row("corpus", {name: "here" if place.is_file() else "to fetch" for name, place in places.items()}),
    ]
    for system in (_ENCODING, *ALL_SYSTEMS):
        times = {task: spent[system, task] for task in TASKS if (system, task) in spent}
        lines.append(_row(system, {task: _minutes(time, time) for task, time in times.items()}))
    return lines


def _row(name: str, cells: Mapping[str, str]) -> str:
    padded = [cells.get(task, "").ljust(len(task)) for task in TASKS]
    return f"  {name:<16}{'  '.join(padded)}".rstrip()


def _programs(records: Sequence[Mapping[str, Any]]) -> list[str]:
    spent: dict[str, list[float]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for values in records:
        name = program_of(values)
        counts[name] += 1
        if seconds := seconds_of(values):
            spent[name].append(seconds / 60)
    lines = []
    for title, group in GROUPS.items():
        lines += ["", f"{title:<22}{'records':>8}  {'minutes each':<14}needs"]
        for name, needs in group.items():
            minutes = _minutes(min(spent[name]), max(spent[name])) if spent[name] else ""
            lines.append(f"  {name:<20}{counts[name] or '':>8}  {minutes:<14}{needs}")
    return lines


@program
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Folder of the records.")
@data_option
def main(results: Path, data: Path) -> None:
    """List tasks, systems and studies, what their records took, and what must be fetched.

    \b
    Example:
        python -m benchmarks list
        python -m benchmarks list --data data/
    """
    records = read_values(results)
    machines = sorted({f"{values['origin']['machine']['cores']} cores" for values in records})
    on = f" on {' or '.join(machines)}" if machines else ""
    click.echo(f"Systems of retrieval, minutes of a recorded run{on}")
    click.echo("\n".join([*_systems(records, data), *_programs(records), f"Others: {', '.join(OTHERS)}"]))
    click.echo("Corpora: python -m benchmarks fetch NAME --to FOLDER; then pass --data FOLDER")
    click.echo("Options: python -m benchmarks PROGRAM --help")


if __name__ == "__main__":
    main()
