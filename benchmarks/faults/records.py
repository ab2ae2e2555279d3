"""The result of a case and the record of `study faults`, and its results as lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.measuring.isolation import described
from benchmarks.record_file import Recorded
from engine.errors import EngineError
from indexer.origin import Origin


@dataclass
class Case:
    """The result of one interrupted operation or damaged copy."""

    outcomes: set[str] = field(default_factory=set)  # "x" is counted as `n_x` below
    problems: list[str] = field(default_factory=list)  # empty if all is well

    @contextmanager
    def guarded(self, step: str, refused: str) -> Iterator[None]:
        """Add the outcome `refused` where the engine refuses a step; any other error is a problem."""
        try:
            yield
        except EngineError:
            self.outcomes.add(refused)
        except Exception as error:  # noqa: BLE001 - whatever is not the engine's error is what we look for
            self.problems.append(f"{step}: {described(error)}")


@dataclass(frozen=True)
class InterruptionCounts:
    """Cases of one fault."""

    n_cases: int
    n_refused: int  # after which a reader was refused until the command was run again
    n_named: int  # whose command ended with an error of the engine
    n_passed: int  # whose command ended well
    n_problems: int  # anything lost, half done, different, unnamed, or not repaired by running the command again


@dataclass(frozen=True)
class DamagedCounts:
    """Damaged copies of one index, or with one damaged kind of file."""

    n_cases: int
    n_right: int  # answered as before
    n_earlier: int  # as after an earlier commit, from an index that a killed writer left
    n_refused: int  # with an error of the engine
    n_wrong: int
    n_found: int  # by `verify`
    n_repaired: int  # copies on which `repair` was run
    n_mended: int  # repairs after which everything was as before
    n_lost: int  # repairs that lost exactly the documents that they named
    n_given_up: int  # repairs that were refused
    n_problems: int


@dataclass(frozen=True)
class FaultsRecord(Recorded, kind="faults", file="faults{seeded}"):
    """Interrupted operations and damaged copies of small indexes."""

    interruptions: dict[str, InterruptionCounts]  # by fault
    operations: dict[str, int]  # cases by operation
    copies: dict[str, DamagedCounts]  # by index
    by_kind: dict[str, DamagedCounts]  # by kind of file
    problems: list[str]
    cpu_seconds: float  # of all processes
    origin: Origin

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown."""
        return [*(self._interrupted() if self.interruptions else []), *(self._damaged() if self.copies else [])]

    def _interrupted(self) -> list[str]:
        counts = self.interruptions.values()
        n_cases, n_problems = sum(one.n_cases for one in counts), sum(one.n_problems for one in counts)
        line = (
            f"- {n_cases:,} interruptions of {len(self.operations)} operations: {n_problems} that lost or changed "
            "data, left a change half done, or could not be completed by running the command again."
        )
        named = self.interruptions.items()
        return [line, *(f"  - {fault}: {one.n_cases:,} cases, {one.n_problems} problems." for fault, one in named)]

    def _damaged(self) -> list[str]:
        counts = self.copies.values()
        n_copies, n_wrong = sum(one.n_cases for one in counts), sum(one.n_wrong for one in counts)
        n_other = sum(one.n_problems for one in counts) - n_wrong
        return [
            f"- {n_copies:,} damaged copies of {len(self.copies)} indexes, sealed and unsealed: {n_wrong} silently "
            f"different answers, {n_other} other problems.",
            *(
                f"  - {kind}: {one.n_cases:,} cases, {one.n_refused:,} refused, {one.n_right + one.n_earlier:,} "
                f"answered correctly, {one.n_found:,} found by `verify`; of {one.n_repaired:,} repairs "
                f"{one.n_mended:,} restored all, {one.n_lost:,} reported lost documents, {one.n_given_up:,} refused."
                for kind, one in self.by_kind.items()
            ),
        ]
