"""What `benchmarks.gpu` records: values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import name_of
from engine.origin import Origin


@dataclass(frozen=True)
class Peak:
    """The fastest of a few products of large square matrices, in 10^12 operations a second."""

    size: int  # rows of each
    bfloat16: float
    float16: float
    float32: float  # full precision, no TF32


@dataclass(frozen=True)
class Encoded:
    """Tokens encoded in a second, one way."""

    what: str  # which sequences
    system: str
    token_budget: int | None  # of one forward pass; None where the system has another word for it
    n_sequences: int
    tokens_per_second: float  # special tokens counted, padding not
    share_of_peak: float | None  # of the operations of the layers, in the peak of that precision


@dataclass(frozen=True)
class Probed:
    """A replica searched with the chunks of one query document at a time."""

    nprobe: int  # 0 of a type without lists
    latency: Percentiles  # of all chunks of a document together, up to ids and similarities in the memory of the CPU
    recall: float  # share of the exact best k chunks found, in [0, 1]


@dataclass(frozen=True)
class Searched:
    """A type of replica over synthetic chunk vectors."""

    factory: str
    n_vectors: int
    width: int
    n_lists: int
    n_queries: int  # documents
    query_chunks: int  # of each
    depth: int  # chunks asked for
    k: int  # of recall
    fill_seconds: float
    size_bytes: int  # that the GPU has less of once it is filled; 0 without a GPU
    points: list[Probed]
    equal_to_cpu: float | None  # share of the places of best k that hold the chunk that numpy finds; None if not looked


@dataclass(frozen=True)
class EndToEnd:
    """The same queries to one real index, searched on the GPU and on the CPU."""

    n_documents: int
    n_chunks: int
    factory: str
    index_seconds: float  # encoding, storing, publishing
    open_seconds: float  # with the copy to the GPU, and the probe
    n_queries: int
    gpu: Percentiles  # of a search with breakdown, encoding aside
    cpu: Percentiles  # by the generation
    cpu_exact: Percentiles  # by scanning all vectors
    equal_hits: float  # share of queries with the documents of the exact scan in the same order
    score_error: float  # largest difference of two scores of the same rank
    told: str  # by the index when it was opened; what the probe found of filters stands there


@dataclass(frozen=True)
class GpuRecord:
    """All stages that came to their end in time."""

    kind: ClassVar[str] = "gpu"

    device: str  # of torch; cpu stands in where there is none
    gpu: str
    gpu_memory_bytes: int
    encoder: str  # name@fingerprint
    is_quick: bool
    peak: Peak | None
    encoded: list[Encoded]
    searched: list[Searched]
    end_to_end: EndToEnd | None
    stage_seconds: dict[str, float]
    failed: dict[str, str]  # by stage
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        where = "-".join(self.gpu.lower().split()) if self.gpu else self.device
        return name_of("gpu", where, "quick" if self.is_quick else "", seed=self.origin.seed)
