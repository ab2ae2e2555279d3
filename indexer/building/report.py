"""Counters of an indexing run, and its progress callback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from engine.readers import Unreadable


@dataclass
class BuildReport:
    """What a run did; counts rows that are on disk."""

    n_added: int = 0
    n_replaced: int = 0
    n_unchanged: int = 0
    n_removed: int = 0
    n_encoded: int = 0  # documents that got vectors
    n_tokens: int = 0  # encoded in this run
    n_chunks: int = 0
    n_chunks_reused: int = 0  # part of `n_chunks`: chunks with the vectors of stored versions of their documents
    n_sections_merged: int = 0  # tiny headed parts that went into a neighbour
    n_sections_cut: int = 0  # pieces of huge sections
    encode_seconds: float = 0.0
    seconds: float = 0.0  # reading, encoding and storing
    generation_seconds: float = 0.0
    peak_memory_bytes: int = 0  # own memory of the process, see `indexer.generation.footprint`; 0 if not measured
    disk_bytes: int = 0  # of the index folder afterwards; 0 if not measured
    n_missing: int = 0  # documents of the index that have no vectors afterwards
    tokens_missing: int = 0  # tokens of those documents, estimated
    failures: list[Unreadable] = field(default_factory=list)

    @property
    def n_seen(self) -> int:
        """Documents read, the failed ones included."""
        return self.n_added + self.n_replaced + self.n_unchanged + len(self.failures)


class Progress(Protocol):
    """A callback for committed progress."""

    def __call__(self, report: BuildReport) -> None:
        """Called after each commit."""
