"""Times commands, each in a process of its own: start-up, reading, indexing, planning and first answers.

Every command has the same measures: seconds by the clock and of the processor, peak memory, and bytes read from disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.isolation import ProcessFailed
from benchmarks.program import Measurement, log, measurement, program
from benchmarks.runs import CHECKOUT, Case, Run
from benchmarks.synthetic import LONG, SHORT, Lengths, documents, save_tiny_bert, vocabulary
from benchmarks.tables.pivot import case_tables
from engine.index import Index

DEMO = CHECKOUT / "demo"
_LONGMATCH = ("-m", "longmatch")
_LAST_CHARACTERS = 300  # of what a command printed, for the message of its failure
# The measures of a case; the smallest of all rounds is recorded.
WALL, CPU, PEAK, READ = "wall time, s", "processor time, s", "peak memory, MiB", "read from disk, MB"


@dataclass(frozen=True)
class Command:
    """Arguments of Python, run in the folder of the measurement."""

    group: str  # a table
    name: str
    arguments: tuple[str, ...]
    cold: Path | None = None  # folder that is dropped from the page cache before each run


def prepare(folder: Path, n_short: int, n_long: int, seed: int) -> list[Command]:
    """Make corpora and indexes in a folder; returns the commands that read them."""
    files = sorted(path for path in (DEMO / "corpus").rglob("*") if path.is_file())[:5]
    query, (first, *_) = str(DEMO / "queries" / "eip-7702.pdf"), files
    for name, encode in (("words.lm", "none"), ("vectors.lm", "all")):
        run(Command("", name, (*_LONGMATCH, "index", name, *map(str, files), "--encode", encode)), folder)
    save_tiny_bert(folder / "tiny", vocabulary(seed), seed=seed, max_tokens=126)
    corpora = {f"{n:,} {lengths.name} documents": _write(folder, lengths, n, seed) for lengths, n in
               ((SHORT, n_short), (LONG, n_long))}  # fmt: skip
    with Index.open(folder / "vectors.lm", store=False) as index:
        doc_id = next(name for name in index.snapshot.doc_ids() if Path(name).name == first.name)
    start = "start-up"
    return [
        Command(start, "import torch", ("-c", "import torch")),
        Command(start, "import longmatch", ("-c", "import longmatch")),
        Command(start, "longmatch --help", (*_LONGMATCH, "--help")),
        Command(start, "longmatch query WORDS.lm QUERY.pdf", (*_LONGMATCH, "query", "words.lm", query)),
        Command(start, "longmatch query VECTORS.lm --id ID", (*_LONGMATCH, "query", "vectors.lm", "--id", doc_id)),
        Command(start, "longmatch query VECTORS.lm QUERY.pdf", (*_LONGMATCH, "query", "vectors.lm", query)),
        *(
            Command("indexing", f"{way}, {name}", ("-c", _INDEX, path, *options))
            for name, path in corpora.items()
            for way, options in (("words", ["--encode", "none"]), ("tiny encoder", ["--encoder", "tiny"]))
        ),
        *(
            Command("planning", name, (*_LONGMATCH, "index", "new.lm", path, "--dry-run", "--encoder", "tiny"))
            for name, path in corpora.items()
        ),
    ]


# Each round indexes into a new folder.
_INDEX = (
    "import sys, tempfile; from indexer.cli import main; "
    "main(['index', tempfile.mkdtemp(dir='.') + '/x.lm', *sys.argv[1:]])"
)


def _write(folder: Path, lengths: Lengths, n: int, seed: int) -> str:
    path = folder / f"{lengths.name}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for document in documents(lengths, n, seed):
            file.write(json.dumps({"id": document.doc_id, "text": document.text}) + "\n")
    return path.name


def first_answers(path: Path, seed: int) -> list[Command]:
    """Queries with a document of an index, with and without its files in the page cache."""
    with Index.open(path, store=False) as index:
        names = index.snapshot.doc_ids()
        size = f"{index.n_documents:,} documents, {index.n_chunks:,} chunks"
    doc_id = names[int(np.random.default_rng(seed).integers(len(names)))]
    query = (*_LONGMATCH, "query", str(path.resolve()), "--id", doc_id)
    label = f"{path.stem.partition('@')[0]}, {size}"
    return [Command("first answer", f"{label}, {name}", query, cold) for name, cold in (("cold", path), ("warm", None))]


# Linux counts the memory of a process before its exec, which is that of the process that started it: a small one.
_LAUNCH = """
import json, os, subprocess, sys, time
started = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
spent = time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, usage.ru_inblock
with open(sys.argv[1], "w") as report:
    json.dump([os.waitstatus_to_exitcode(status), *spent], report)
"""


def run(command: Command, folder: Path) -> dict[str, float]:
    """Run a command once."""
    if command.cold is not None:
        forget_pages(command.cold)
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryFile("w+") as printed, tempfile.NamedTemporaryFile("r") as report:
        launch = [sys.executable, "-S", "-c", _LAUNCH, report.name, sys.executable, "-P", *command.arguments]
        subprocess.run(launch, cwd=folder, env=environment, stdout=printed, stderr=printed, check=True)
        code, seconds, cpu_seconds, peak_kib, blocks = json.load(report)
        if code:
            printed.seek(0)
            last = printed.read().strip()[-_LAST_CHARACTERS:]
            raise ProcessFailed(f"{command.name} ended with {code} ({last}); mend that first")
    return {
        WALL: round(seconds, 3),
        CPU: round(cpu_seconds, 3),
        PEAK: round(peak_kib / 1024, 1),
        READ: round(blocks * 512 / 1e6, 1),
    }


def forget_pages(folder: Path) -> None:
    """Drop the files of a folder from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def time_commands(commands: Sequence[Command], folder: Path, n_rounds: int) -> Mapping[str, list[Case]]:
    """Run the commands in turn, `n_rounds` times; the cases of each group, with the smallest value of each measure."""
    values: dict[Command, list[dict[str, float]]] = {command: [] for command in commands}
    for number in range(n_rounds):
        for command, rounds in values.items():
            rounds.append(run(command, folder))
            log(f"round {number + 1}, {command.name}: {rounds[-1][WALL]:.2f} s")
    groups: dict[str, list[Case]] = {}
    for command, rounds in values.items():
        least = {name: min(one[name] for one in rounds) for name in rounds[0]}
        groups.setdefault(command.group, []).append(Case(id=command.name, values=least))
    return groups


@program
@click.argument("indexes", nargs=-1, metavar="[INDEX...]", type=click.Path(exists=True, path_type=Path))
@click.option("--rounds", "n_rounds", default=5, type=click.IntRange(1), help="Runs of each command.")
@click.option("--short", "n_short", default=20_000, type=click.IntRange(1), help="Number of short documents.")
@click.option("--long", "n_long", default=2_000, type=click.IntRange(1), help="Number of long documents.")
@measurement(seed="Seed of synthetic texts and of queries.", quick="Few documents, one round")
def main(call: Measurement, indexes: tuple[Path, ...], n_rounds: int, n_short: int, n_long: int) -> None:
    """Time commands in processes of their own; with an INDEX, also its first answer.

    \b
    Example:
        python -m benchmarks study timed papers.lm --rounds 5
    """
    n_rounds, n_short, n_long = (1, 8, 4) if call.is_quick else (n_rounds, n_short, n_long)
    with call.folder() as folder:
        commands = prepare(folder, n_short, n_long, call.seed)
        commands += [command for path in indexes for command in first_answers(path, call.seed)]
        groups = time_commands(commands, folder, n_rounds)
    details = {"note": f"The smallest of {n_rounds} rounds, in which the commands run in turn."}
    runs = [
        Run(task="timed", dataset="commands", system=group, cases=cases, details=details, origin=call.origin)
        for group, cases in groups.items()
    ]
    call.publish(runs, case_tables)
