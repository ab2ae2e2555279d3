"""What the program of plans records: values only, one file a corpus and budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indexer.training.origin import Origin


@dataclass(frozen=True)
class Kept:
    """One plan, and the run after it, each a process of its own."""

    planned_seconds: float
    seconds: float  # of the run, from its first document to its published index
    planned_bytes: int  # own memory at its most
    peak_bytes: int
    planned_disk_bytes: int  # of the index afterwards
    disk_bytes: int
    plan_seconds: float  # that planning took, start of the program included


@dataclass(frozen=True)
class PlanRecord:
    """Plans of indexing one corpus under one budget, beside what the runs took."""

    kind: ClassVar[str] = "plan"

    dataset: str  # name@checksum
    is_quick: bool
    n_documents: int
    n_tokens: int  # encoded
    encoder: str
    memory_bytes: int | None  # the budget
    factory: str  # that the plans name; "" for none
    rounds: list[Kept]
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        limited = f"-memory{round(self.memory_bytes / 1e6)}m" if self.memory_bytes else ""
        quick = "-quick" if self.is_quick else ""
        return f"plan-{self.dataset.partition('@')[0]}-{self.n_documents}{limited}{quick}"
