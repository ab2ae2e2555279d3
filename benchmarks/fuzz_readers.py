"""Reads damaged files of every format as an indexing run does, and records what became of each."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from benchmarks.fuzzing.mutations import damaged
from benchmarks.fuzzing.record import FuzzRecord, FuzzRow, Outcome
from benchmarks.fuzzing.seeds import seeds
from benchmarks.fuzzing.table import fuzz_table
from benchmarks.options import log, out_option
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from engine.document import Document
from engine.readers import Unreadable
from indexer.reading.reader import DocumentReader, ReadLimits
from indexer.reading.requests import Request

N_FILES, N_QUICK = 20_000, 160
LIMITS = ReadLimits(seconds=5.0, memory_bytes=256 * 2**20)
BATCH = 200  # files on disk at one time
_MOST_REASONS = 5
_ORDER = (Outcome.LOST, Outcome.HUNG, Outcome.DIED, Outcome.LIMIT, Outcome.READ, Outcome.FAILED, Outcome.REFUSED)
_WORDS = (
    ("no answer within", Outcome.HUNG),
    ("reading needs more than", Outcome.LIMIT),
    ("the parser crashed", Outcome.DIED),
    ("the process that read it was killed", Outcome.DIED),
    ("the reader failed", Outcome.DIED),
    ("the parser gave no document", Outcome.FAILED),
)


def outcome_of(results: Sequence[Document | Unreadable]) -> tuple[Outcome, str]:
    """What became of a file, the worst first, and the reason; a file of JSON lines may give several results."""
    found = [_outcome(one) for one in results] or [(Outcome.READ, "")]
    return min(found, key=lambda one: _ORDER.index(one[0]))


def _outcome(result: Document | Unreadable) -> tuple[Outcome, str]:
    if isinstance(result, Document):
        return Outcome.READ, ""
    for words, outcome in _WORDS:
        if result.reason.startswith(words):
            return outcome, result.reason
    is_exception = " parser failed (" in result.reason
    return Outcome.FAILED if is_exception else Outcome.REFUSED, result.reason


def fuzz(suffix: str, n_files: int, seed: int, folder: Path, limits: ReadLimits = LIMITS) -> FuzzRow:
    """Damage the seed of a format so many times, and read all of them.

    Args:
        suffix: one of `seeds`.
        n_files: at least 1.
        seed: of random numbers; file `number` of a format is the same in every run with it.
        folder: an empty one, for the files.
        limits: of reading one file.
    """
    counts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    slowest = 0.0
    with DocumentReader(limits) as reader:
        for first in range(0, n_files, BATCH):
            paths = list(_files(suffix, range(first, min(first + BATCH, n_files)), seed, folder))
            for path, (outcome, reason, seconds) in zip(paths, _read(reader, paths), strict=True):
                counts[outcome] += 1
                slowest = max(slowest, seconds)
                if outcome not in (Outcome.READ, Outcome.REFUSED) and len(reasons) < _MOST_REASONS:
                    reasons.setdefault(reason, f"{path.name.partition('.')[0]}: {reason}")
                path.unlink()
    return FuzzRow(suffix, n_files, dict(counts), round(slowest, 2), list(reasons.values()))


def _files(suffix: str, numbers: Iterable[int], seed: int, folder: Path) -> Iterator[Path]:
    known = seeds()
    for number in numbers:
        rng = random.Random(f"{seed} {suffix} {number}")
        path = folder / f"{number}{suffix}"
        path.write_bytes(damaged(known[suffix], list(known.values()), rng))
        yield path


def _read(reader: DocumentReader, paths: Sequence[Path]) -> Iterator[tuple[Outcome, str, float]]:
    """The outcome, reason and seconds of each file, one after the other."""
    for path in paths:
        started = time.perf_counter()
        try:
            outcome, reason = outcome_of(list(reader.read([Request(str(path))])))
        except Exception as error:  # noqa: BLE001 - whatever ends a run of indexing is what is counted
            outcome, reason = Outcome.LOST, repr(error)
        yield outcome, reason, time.perf_counter() - started


@program
@click.option(
    "--files", "n_files", default=N_FILES, show_default=True, type=click.IntRange(1), help="Over all formats."
)
@click.option("--quick", is_flag=True, help=f"{N_QUICK} files; a record only where --out is given.")
@click.option("--seed", default=0, show_default=True, help="Of the damage.")
@out_option
@click.pass_context
def main(context: click.Context, n_files: int, quick: bool, seed: int, out: Path | None) -> None:
    """Read damaged files of every format within limits, and record what became of them.

    \b
    Example:
        python -m benchmarks study fuzz_readers --files 20000
    """
    origin = origin_of(context, seed)
    folder, started = out or (None if quick else RESULTS), time.perf_counter()
    n_files = min(n_files, N_QUICK) if quick else n_files
    suffixes = list(seeds())
    rows = []
    with tempfile.TemporaryDirectory(prefix="longmatch-fuzz-") as files:
        for place, suffix in enumerate(suffixes):
            n_own = n_files // len(suffixes) + (place < n_files % len(suffixes))
            rows += [fuzz(suffix, n_own, seed, Path(files))] if n_own else []
            log(f"{suffix}: {n_own:,} files")
    record = FuzzRecord(
        n_files=n_files,
        read_seconds=LIMITS.seconds,
        read_memory_bytes=LIMITS.memory_bytes,
        rows=rows,
        seconds=round(time.perf_counter() - started, 1),
        origin=origin,
        is_quick=quick,
    )
    if folder is not None:
        write_record(record, folder)
    click.echo(fuzz_table([record]))
