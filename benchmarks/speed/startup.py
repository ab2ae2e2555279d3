"""Measures the startup time of commands that have hardly anything to do, compared with importing torch."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import processor_seconds
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded
from benchmarks.speed.commands import run_python
from benchmarks.store.fuzz_seeds import seeds
from indexer.origin import Origin

CHECKOUT = Path(__file__).resolve().parents[2]
_PATIENCE = 600  # seconds by the clock
_SUFFIXES = (".txt", ".md", ".html", ".tex", ".odt")  # of the seeds that are indexed
_LONGMATCH = ["-m", "longmatch"]
COMMANDS: Mapping[str, Sequence[str]] = {
    "import torch": ["-c", "import torch"],
    "import longmatch": ["-c", "import longmatch"],
    "longmatch --help": [*_LONGMATCH, "--help"],
    "longmatch query WORDS.lm query.pdf": [*_LONGMATCH, "query", "words.lm", "query.pdf"],
    "longmatch query VECTORS.lm --id seed.md": [*_LONGMATCH, "query", "vectors.lm", "--id", "seed.md"],
    "longmatch query VECTORS.lm query.pdf": [*_LONGMATCH, "query", "vectors.lm", "query.pdf"],
}
_HEAD = ["Command", "Processor time, s", "Multiple of `import torch`", "Wall time, s"]
_NOTE = (
    "Each figure is the smallest of {runs} runs. The commands run in turn, each in a process of its own; processor "
    "time is that of all processes. The query is a PDF of one page, and the indexes have {documents} documents of one "
    "page, so most of the time is the start."
)


@dataclass(frozen=True)
class StartRow:
    """One command, run several times; each list has a number for each run."""

    name: str
    processor_seconds: list[float]  # of its processes
    seconds: list[float]  # by the clock


@dataclass(frozen=True)
class StartupRecord(Recorded, kind="startup", file="startup"):
    """The startup time of commands that have hardly anything to do."""

    rows: list[StartRow]  # the others are compared with the first
    origin: Origin


def prepare(folder: Path) -> None:
    """Index a few small documents, once by words alone and once with vectors, and write a query."""
    (folder / "in").mkdir(parents=True)
    for suffix in _SUFFIXES:
        (folder / "in" / f"seed{suffix}").write_bytes(seeds()[suffix])
    (folder / "query.pdf").write_bytes(seeds()[".pdf"])
    for name, encode in (("words.lm", "none"), ("vectors.lm", "all")):
        _run([*_LONGMATCH, "index", name, "in", "--encode", encode], f"longmatch index {name}", folder)


def measure(folder: Path, n_runs: int) -> list[StartRow]:
    """Run each command `n_runs` times, in turn."""
    rows = {name: StartRow(name, [], []) for name in COMMANDS}
    for number in range(n_runs):
        for name, arguments in COMMANDS.items():
            before, started = processor_seconds(), time.perf_counter()
            _run(arguments, name, folder)
            rows[name].seconds.append(round(time.perf_counter() - started, 2))
            rows[name].processor_seconds.append(round(processor_seconds() - before, 2))
            log(f"run {number + 1}, {name}: {rows[name].processor_seconds[-1]:.2f} s")
    return list(rows.values())


def _run(arguments: Sequence[str], name: str, folder: Path) -> None:
    environment = {"PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"}
    run_python(["-P", *arguments], name, patience=_PATIENCE, folder=folder, environment=environment)


def startup_table(records: Sequence[StartupRecord]) -> str:
    """A row for each command."""
    rows = []
    for record in records:
        first = min(record.rows[0].processor_seconds)
        for row in record.rows:
            spent = min(row.processor_seconds)
            rows.append([f"`{row.name}`", f"{spent:.2f}", f"{spent / first:.2f}", f"{min(row.seconds):.2f}"])
    n_runs = min(len(row.seconds) for record in records for row in record.rows)
    note = _NOTE.format(runs=n_runs, documents=len(_SUFFIXES))
    return "\n".join([*markdown(_HEAD, rows), "", note, "", *origins(records)])


@program
@click.option("--runs", "n_runs", default=5, type=click.IntRange(1), help="Runs of each command.")
@measurement(seed="Nothing is drawn.")
def main(run: Measurement, n_runs: int) -> None:
    """Run commands that have hardly anything to do, and record their processor time.

    \b
    Example:
        python -m benchmarks study startup --runs 5
    """
    with run.folder() as folder:
        prepare(folder)
        rows = measure(folder, n_runs)
    run.publish([StartupRecord(rows, run.origin)], startup_table)
