"""What a run over index types records: values only, one file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import name_of
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Found:
    """What one kind of query finds, and how quickly."""

    recall: float  # share of the exact answer, in [0, 1]
    latency: Percentiles


@dataclass(frozen=True)
class AnnPoint:
    """One index with one setting."""

    setting: str  # as FAISS writes it; "" where there is nothing to set
    chunk: Found  # one query chunk: its exact k neighbours
    document: Found | None  # a query document: its exact best k targets; None where a graph is set more narrowly
    deepest: int  # chunks that a document asked for, for each of its chunks, at most; 0 where none was asked


@dataclass(frozen=True)
class AnnBuild:
    """One index: what building it took, and what it finds."""

    library: str
    version: str  # of its distribution; FAISS's for ours
    factory: str
    is_rescored: bool  # similarities are read from the stored rows beside it
    build_seconds: float
    bytes_per_vector: float  # of its file
    stored_bytes_per_vector: int  # of the rows that are read beside it; 0 where none are
    build_peak_mib: float  # most resident while building and writing, beyond the float32 rows it is given
    search_peak_mib: float  # most resident during a timed search, mapped rows that were read among it, no rows before
    points: list[AnnPoint]
    commit: str = ""  # at which it was measured, where it is not that of the record

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.library} {self.factory}"


@dataclass(frozen=True)
class AnnRecord:
    """Index types over one collection of vectors, each built and searched in a process of its own."""

    kind: ClassVar[str] = "ann"

    collection: str  # name of the index's corpus, or "synthetic"
    source: str  # the index's name, with checksum and fingerprint; the law and its numbers
    encoder: str  # name@fingerprint; "" of synthetic vectors
    is_quick: bool  # a small part, few settings
    n_vectors: int
    n_documents: int
    width: int
    n_query_documents: int
    n_query_chunks: int
    document_chunks: int  # of a query document whose latency is measured
    depth: int  # chunks that are asked for, for each chunk of a document, at first, and of a rescored type always
    k: int
    threads: int  # of searching
    build_threads: int
    builds: list[AnnBuild]
    origin: Origin
    failed: dict[str, str] = field(default_factory=dict)  # types by name, and why they have no result

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        size = f"{self.n_vectors}x{self.width}"
        given = (f"k{self.k}", f"threads{self.threads}", "quick" if self.is_quick else "")
        return name_of(self.kind, self.collection, self.encoder.partition("@")[0], size, *given, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"types": len(self.builds), "query documents": self.n_query_documents}
