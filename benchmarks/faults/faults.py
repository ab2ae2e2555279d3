"""Interrupts every operation and damages every kind of file, thousands of times, and counts the outcomes."""

from __future__ import annotations

import gc
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click
import numpy as np

from benchmarks.faults.damaged_copies import damaged, make_originals
from benchmarks.faults.interruptions import Fault, injected, replayed
from benchmarks.faults.operations import OPERATIONS
from benchmarks.faults.recording import record
from benchmarks.faults.records import Case, DamagedCounts, FaultsRecord, InterruptionCounts
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import processor_seconds
from benchmarks.options import log
from benchmarks.program import program

CountsT = TypeVar("CountsT", InterruptionCounts, DamagedCounts)
_NOTED = 100  # cases, after which a line is printed and the record is written
_REPLAYED = (Fault.KILL, Fault.SECOND_KILL, Fault.CRASH)
_MEMORY = Path("/dev/shm")
_ERRORS_HELP = "I/O errors, full disks, short writes and vanished files to try."


class Faults:
    """Runs cases in the folder `work`, and counts them; `noted` gets a line after each hundred cases."""

    def __init__(self, work: Path, seed: int, noted: Callable[[str], None]) -> None:
        self._work, self._noted = work, noted
        self._rng = np.random.default_rng(seed)
        self.interruptions: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.operations: Counter[str] = Counter()
        self.copies: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.problems: list[str] = []

    def interrupt(self, n_replayed: int, n_injected: int) -> None:
        """Interrupt the operations, each equally often, at moments that are spread over the whole of each.

        Args:
            n_replayed: kills, second kills and losses of power, a third of each.
            n_injected: other faults, equally many of each.
        """
        n_injections = len(Fault) - len(_REPLAYED)
        originals = [record(operation, self._work / "clean") for operation in OPERATIONS]
        cases = [
            (expected, fault, at)
            for expected in originals
            for fault in Fault
            for of_fault in [n_replayed / len(_REPLAYED) if fault in _REPLAYED else n_injected / n_injections]
            for at in self._moments(len(expected.recording.calls), of_fault / len(OPERATIONS))
        ]
        gc.freeze()  # otherwise each child copies the pages that the garbage collector touches
        for number in self._rng.permutation(len(cases)).tolist():  # at any time the cases done are a fair sample
            expected, fault, at = cases[number]
            if fault in _REPLAYED:
                found = replayed(expected, fault, at, self._rng, self._work / "case")
            else:
                found = injected(expected, fault, at, self._work / "case")
            operation = expected.operation.name
            found.problems = [f"{operation}, {fault.value} at call {at}: {problem}" for problem in found.problems]
            self.operations[operation] += 1
            self._count(found, self.interruptions[fault.value])
            self._note("interruptions", self.operations.total())

    def _moments(self, n_calls: int, n: float) -> list[int]:
        """One random call in each of `n` equal parts of a run; a fraction is rounded up or down at random."""
        n_moments = int(n) + (self._rng.random() < n % 1)
        parts = (np.arange(n_moments) + self._rng.random(n_moments)) / max(1, n_moments)
        return [int(at) for at in parts * (n_calls + 1)]

    def damage(self, n_copies: int) -> None:
        """Damage copies, equally many of each index; every third copy is repaired."""
        originals = make_originals(self._work / "clean")
        gc.freeze()
        for number in range(n_copies):
            original = originals[number % len(originals)]
            is_repaired = number // len(originals) % 3 == 0
            kind, found = damaged(original, self._rng, self._work / "case", is_repaired=is_repaired)
            self._count(found, self.copies[original.name], self.by_kind[kind])
            self._note("copies", number + 1)

    def _count(self, found: Case, *counters: Counter[str]) -> None:
        for counter in counters:
            counter.update(["n_cases", *(f"n_{outcome}" for outcome in found.outcomes)])
            counter["n_problems"] += bool(found.problems)
        self.problems += found.problems

    def _note(self, what: str, n: int) -> None:
        if n % _NOTED == 0:
            self._noted(f"{n} {what}, {len(self.problems)} problems")


def _counts(kind: type[CountsT], tallies: Mapping[str, Counter[str]]) -> dict[str, CountsT]:
    """The counts of each tally as a dataclass, whose fields have the same names."""
    names = kind.__dataclass_fields__
    return {key: kind(**{name: counts[name] for name in names}) for key, counts in sorted(tallies.items())}


@program
@click.option("--kills", "n_kills", default=2000, type=click.IntRange(0), help="Kills and power losses to try.")
@click.option("--errors", "n_errors", default=800, type=click.IntRange(0), help=_ERRORS_HELP)
@click.option("--copies", "n_copies", default=5000, type=click.IntRange(0), help="Damaged copies to try.")
@measurement(
    seed="Seed of moments, files and places.", work="Folder to work in; by default in memory, removed at the end."
)
def main(run: Measurement, n_kills: int, n_errors: int, n_copies: int) -> None:
    """Interrupt every operation and damage every kind of file of small indexes, and record every loss.

    \b
    Example:
        python -m benchmarks study faults --kills 2000 --errors 800 --copies 5000
    """
    warnings.simplefilter("ignore")
    started = processor_seconds()
    place = run.given_work or (_MEMORY if _MEMORY.is_dir() else None)

    def keep() -> FaultsRecord:
        made = FaultsRecord(
            interruptions=_counts(InterruptionCounts, faults.interruptions),
            operations=dict(sorted(faults.operations.items())),
            copies=_counts(DamagedCounts, faults.copies),
            by_kind=_counts(DamagedCounts, faults.by_kind),
            problems=list(faults.problems),
            cpu_seconds=round(processor_seconds() - started, 1),
            origin=run.origin,
        )
        run.keep(made)
        return made

    def note(line: str) -> None:
        log(line)
        keep()

    with tempfile.TemporaryDirectory(prefix="longmatch-faults-", dir=place) as folder:
        faults = Faults(Path(folder), run.seed, note)
        if n_kills or n_errors:
            faults.interrupt(n_kills, n_errors)
        if n_copies:
            faults.damage(n_copies)
    made = keep()
    click.echo("\n".join(made.promises + made.problems))
