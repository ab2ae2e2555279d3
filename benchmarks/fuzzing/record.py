"""What became of damaged files: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from indexer.training.origin import Origin


class Outcome(StrEnum):
    """What becomes of one file; the worst one counts where a file gives several."""

    READ = "read"
    REFUSED = "refused"  # with a reason that the reader foresaw
    FAILED = "failed"  # with the exception of a parser as the reason
    LIMIT = "over a limit"  # of time or memory, and recorded with that reason
    DIED = "process died"  # the one that reads; recorded with that reason
    HUNG = "hung"  # no answer within ten times the limit of time, by the clock
    LOST = "lost"  # no result, or the process that indexes failed


@dataclass(frozen=True)
class FuzzRow:
    """The damaged files of one format."""

    format: str  # suffix
    n_files: int
    outcomes: dict[str, int]  # by `Outcome`
    slowest_seconds: float  # by the clock, of the slowest file
    reasons: list[str]  # the first distinct ones of files that were neither read nor foreseen, with the file's number


@dataclass(frozen=True)
class FuzzRecord:
    """Readers against damaged files."""

    kind: ClassVar[str] = "fuzz"

    n_files: int
    read_seconds: float  # limit of processor time
    read_memory_bytes: int
    rows: list[FuzzRow]
    seconds: float
    origin: Origin
    is_quick: bool = False

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"fuzz-{self.n_files}" + ("-quick" if self.is_quick else "")
