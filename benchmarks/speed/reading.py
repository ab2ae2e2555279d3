"""Measures the processor time that a process with limits adds to reading files in one process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import processor_seconds
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded
from engine.readers import read_file
from engine.text.document import Document
from indexer.building.corpus import corpus_files
from indexer.origin import Origin
from indexer.reading.reader import DocumentReader
from indexer.reading.requests import Request, read_here

_TICK = 0.01  # seconds; resolution of the clock of processor time
DEMO = Path(__file__).resolve().parents[2] / "demo" / "corpus"
_HEAD = ["Corpus", "Files", "MB", "One process, s", "With limits, s", "Difference", "Start, s"]
_HEAD += ["Difference without the start"]
_NOTE = (
    "Processor time of all processes, median of {rounds} rounds in which both ways alternate. In brackets: lowest and "
    "highest of single rounds. With limits: files are read in the process that `longmatch index` uses, which is "
    "started for each round. Start: start of this process, with one small file. Plain text: the texts of the files "
    "above, as .txt."
)


@dataclass(frozen=True)
class ReadingRow:
    """One corpus, read several times; seconds are of processor time, a number for each round."""

    corpus: str
    n_files: int
    n_bytes: int
    here: list[float]  # read in one process
    apart: list[float]  # read in a process with limits: both processes, its start included
    start: list[float]  # start of the process with limits, with a single small file


@dataclass(frozen=True)
class ReadingRecord(Recorded, kind="reading", file="reading{quick}"):
    """The cost that the process with limits adds to reading."""

    rows: list[ReadingRow]
    is_quick: bool
    origin: Origin


def copies(folder: Path, n_files: int) -> Path:
    """The files of the demo corpus in turn, until there are `n_files`."""
    folder.mkdir()
    files = [file for file, _ in corpus_files([str(DEMO)])]
    for number, file in enumerate(islice(cycle(files), n_files)):
        shutil.copyfile(file, folder / f"{number:04}{''.join(file.suffixes)}")
    return folder


def texts(folder: Path, n_files: int) -> Path:
    """The texts of the demo corpus in turn, as plain text."""
    folder.mkdir()
    found = [one.text for file, _ in corpus_files([str(DEMO)]) for one in read_file(file) if isinstance(one, Document)]
    for number, text in enumerate(islice(cycle(found), n_files)):
        (folder / f"{number:04}.txt").write_text(text, "utf-8")
    return folder


def compare(name: str, folder: Path, n_rounds: int) -> ReadingRow:
    """Read a folder both ways in turn, `n_rounds` times."""
    files = [file for file, _ in corpus_files([str(folder)])]
    requests = [Request(str(file), file.name) for file in files]
    smallest = min(requests, key=lambda request: Path(request.source).stat().st_size)
    _read_here(requests)  # imports the readers
    row = ReadingRow(name, len(files), sum(file.stat().st_size for file in files), [], [], [])
    n_read: dict[tuple[Callable[[Sequence[Request]], int], int], int] = {}
    for number in range(n_rounds):
        ways = [(row.here, _read_here, requests), (row.apart, _read_apart, requests)]
        for seconds, way, wanted in [*ways[:: 1 if number % 2 else -1], (row.start, _read_apart, [smallest])]:
            before = processor_seconds()
            n_read[way, len(wanted)] = way(wanted)
            seconds.append(max(_TICK, round(processor_seconds() - before, 2)))
        assert n_read[_read_here, len(requests)] == n_read[_read_apart, len(requests)]
        log(f"{name}, round {number + 1}: {row.here[-1]} s here, {row.apart[-1]} s with limits")
    return row


def _read_here(requests: Sequence[Request]) -> int:
    return sum(1 for request in requests for _ in read_here(request))


def _read_apart(requests: Sequence[Request]) -> int:
    with DocumentReader() as reader:
        return sum(1 for _ in reader.read(requests))


def reading_table(records: Sequence[ReadingRecord]) -> str:
    """A row for each corpus."""
    rows = [_cells(row) for record in records for row in record.rows]
    n_rounds = min(len(row.here) for record in records for row in record.rows)
    return "\n".join([*markdown(_HEAD, rows), "", _NOTE.format(rounds=n_rounds), "", *origins(records)])


def _cells(row: ReadingRow) -> list[str]:
    here, apart, start = median(row.here), median(row.apart), median(row.start)
    each = sorted(two / one - 1 for one, two in zip(row.here, row.apart, strict=True))
    return [
        row.corpus,
        f"{row.n_files:,}",
        f"{row.n_bytes / 1e6:.1f}",
        f"{here:.2f}",
        f"{apart:.2f}",
        f"{apart / here - 1:+.1%} [{each[0]:+.1%}, {each[-1]:+.1%}]",
        f"{start:.2f}",
        f"{(apart - start) / here - 1:+.1%}",
    ]


@program
@click.option("--files", "n_files", default=500, type=click.IntRange(1), help="Files of each corpus.")
@click.option("--rounds", "n_rounds", default=5, type=click.IntRange(1), help="Rounds of both ways.")
@measurement(seed="Nothing is drawn.", quick="Eight files in one round")
def main(run: Measurement, n_files: int, n_rounds: int) -> None:
    """Read files in one process and in a process with limits, and record the processor time of both.

    \b
    Example:
        python -m benchmarks study reading --rounds 5
    """
    n_files, n_rounds = (8, 1) if run.is_quick else (n_files, n_rounds)
    with run.folder() as folder:
        rows = [
            compare("plain text", texts(folder / "texts", n_files), n_rounds),
            compare("demo corpus", copies(folder / "copies", n_files), n_rounds),
        ]
    record = ReadingRecord(rows[::-1], run.is_quick, run.origin)
    run.publish([record], reading_table)
