"""What is recorded of a task in slices, by length and by position: frozen values, one JSON file a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.systems import Settings
from indexer.training.origin import Origin

N_TENTHS = 10


@dataclass(frozen=True)
class PositionRecord:
    """Where in queries and in targets the contributions lie that make the scores.

    Groups are `all`, the k best hits of each query, and `relevant`, those of them
    that are judged relevant; sides are `query` and `target`. A list has a value
    for each tenth of the text, from its beginning.
    """

    kind: ClassVar[str] = "positions"

    task: str
    dataset: str  # name@checksum
    system: str
    encoder: str  # name@fingerprint
    settings: Settings
    split: str
    k: int  # hits of a query
    n_queries: dict[str, int]  # by group: with a hit
    n_hits: dict[str, int]  # by group
    n_placed: dict[str, int]  # by group: hits that have parts
    document_share: dict[str, float]  # by group: mean share of a score that whole documents gave; it has no place
    mass: dict[str, dict[str, list[float]]]  # by group and side: mean share of parts, summing to 1, over placed hits
    low: dict[str, dict[str, list[float]]]  # ends of 95 % bootstrap intervals over queries
    high: dict[str, dict[str, list[float]]]
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"positions-{self.task}-{self.system}-{self.encoder.partition('@')[0]}-{self.split}"
