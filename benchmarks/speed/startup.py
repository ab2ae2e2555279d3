"""Measures the startup time of commands that have hardly anything to do, compared with importing torch."""

from __future__ import annotations

import os
import subprocess
import sys
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
from benchmarks.store.fuzz_seeds import seeds
from engine.errors import EngineError
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


class CommandFailed(EngineError):
    """Raised when a measured command failed."""


@dataclass(frozen=True)
class Typed:
    """The result of a command."""

    status: int
    output: str
    errors: str
    processor_seconds: float
    seconds: float  # by the clock


def run_typed(arguments: Sequence[str], folder: Path) -> Typed:
    """Run Python with arguments, as `-c CODE` or `-m MODULE`.

    Raises:
        subprocess.TimeoutExpired: it takes longer than ten minutes.
    """
    before, started = processor_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    seconds = time.perf_counter() - started
    return Typed(done.returncode, done.stdout, done.stderr, processor_seconds() - before, seconds)


def prepare(folder: Path) -> None:
    """Index a few small documents, once by words alone and once with vectors, and write a query.

    Raises:
        CommandFailed: an index was not made.
    """
    (folder / "in").mkdir(parents=True)
    for suffix in _SUFFIXES:
        (folder / "in" / f"seed{suffix}").write_bytes(seeds()[suffix])
    (folder / "query.pdf").write_bytes(seeds()[".pdf"])
    for name, encode in (("words.lm", "none"), ("vectors.lm", "all")):
        done = run_typed([*_LONGMATCH, "index", name, "in", "--encode", encode], folder)
        if done.status:
            raise CommandFailed(f"longmatch index {name} failed: {done.errors[-300:]}")


def measure(folder: Path, n_runs: int) -> list[StartRow]:
    """Run each command `n_runs` times, in turn.

    Raises:
        CommandFailed: a command failed.
    """
    rows = {name: StartRow(name, [], []) for name in COMMANDS}
    for number in range(n_runs):
        for name, arguments in COMMANDS.items():
            done = run_typed(arguments, folder)
            if done.status:
                raise CommandFailed(f"{name} failed: {done.errors[-300:]}")
            rows[name].processor_seconds.append(round(done.processor_seconds, 2))
            rows[name].seconds.append(round(done.seconds, 2))
            log(f"run {number + 1}, {name}: {done.processor_seconds:.2f} s")
    return list(rows.values())


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
    record = StartupRecord(rows, run.origin)
    run.publish([record], startup_table)
