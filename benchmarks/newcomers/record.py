"""What became of first tries, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indexer.training.origin import Origin


@dataclass(frozen=True)
class Outcome:
    """What a person saw."""

    kind: str  # answer, clear error, traceback or wrong answer
    seconds: float  # of processor time, from the start of Python
    n_lines: int  # typed
    shown: str  # the last line of the output, or of the errors


@dataclass(frozen=True)
class TryRow:
    """One try."""

    name: str
    before: Outcome | None  # None where no earlier checkout was given
    after: Outcome


@dataclass(frozen=True)
class FirstMinutesRecord:
    """The commonest first tries, by an earlier commit and by this one."""

    kind: ClassVar[str] = "first_minutes"

    before_commit: str  # "" without one
    encode: str  # of the index that is searched
    is_quick: bool
    rows: list[TryRow]
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return "first-minutes_quick" if self.is_quick else "first-minutes"
