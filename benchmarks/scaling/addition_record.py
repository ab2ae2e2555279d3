"""What the program records that adds documents to a large index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Stage:
    """An index before documents came, with them committed alone, or with them in its generation."""

    latency: Percentiles  # of the same queries each time, warm, encoding aside, with the breakdown of the page
    n_vectors: int  # in the generation; chunks of later documents are scanned
    nprobe: int
    recall: float  # of the generation, as measured before it was published


@dataclass(frozen=True)
class AdditionRecord:
    """What it takes to add documents to an index, and when queries see them."""

    kind: ClassVar[str] = "addition"

    source: str  # name of the real index, and its checksum
    is_quick: bool
    n_documents: int  # before
    n_chunks: int
    factory: str
    n_added: int
    n_added_chunks: int
    commit_seconds: float  # to shards and catalog, durably
    answer_seconds: float  # from there: a new process opens the index and answers
    n_asked: int  # of the documents added, right after the commit, each with itself
    n_found: int  # of those, that came first
    outcome: str  # of the generation then: "joined", "built anew", or "scanned" where so few are left outside
    join_seconds: float  # until it was published, its recall measured
    build_seconds: float  # that the generation before them took, built from nothing
    encode_seconds: float | None  # that the encoder of the index takes of as many chunks; None where not measured
    before: Stage
    committed: Stage
    after: Stage
    n_queries: int
    k: int
    threads: int
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        quick = "-quick" if self.is_quick else ""
        return f"addition-{self.source.partition('@')[0]}-{self.n_chunks}-{self.n_added}{quick}"
