"""What clients of a server saw: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from indexer.training.origin import Origin


@dataclass(frozen=True)
class LoadRow:
    """So many clients at the same time, each with one request after another."""

    n_clients: int
    seconds: float
    n_answered: int  # valid requests with their result
    n_busy: int  # requests that the limit of concurrency refused
    n_refused: int  # hostile requests with the expected error
    wrong: list[str]  # the first distinct others: what was sent, status, beginning of the body
    n_wrong: int
    latency: Percentiles  # of valid requests with their result
    memory_mib: float  # resident, of the server, when the row ended


@dataclass(frozen=True)
class LoadRecord:
    """A server under load."""

    kind: ClassVar[str] = "load"

    index: str
    n_documents: int
    threads: int  # of the server
    concurrency: int
    memory_mib: float  # resident, of the server, when it was ready
    rows: list[LoadRow]
    seconds: float
    origin: Origin
    is_quick: bool = False

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"load-{self.index}" + ("-quick" if self.is_quick else "")
