"""What the scale programs record: values only, one file a size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.measuring.latency import Percentiles
from benchmarks.measuring.peak import Memory
from benchmarks.scaling.calibration import Calibration
from benchmarks.scaling.neighbours import CandidateLists
from indexer.training.origin import Origin


@dataclass(frozen=True)
class GrowthCost:
    """What making the index took, all calls together that it took to grow it to its size."""

    generate_seconds: float
    commit_seconds: float
    publish_seconds: float  # of this size's generation: training, adding, measuring, writing; 0 where it was there


@dataclass(frozen=True)
class Asked:
    """Queries of one kind, warm, one at a time; encoding aside, full breakdown of the page included."""

    n_queries: int
    n_chunks: float  # of a query document, median
    latency: Percentiles
    stages_ms: dict[str, float]  # mean milliseconds of a search by stage; they sum to its mean
    faiss_p50_ms: float | None  # the first search of the ANN index alone; None without a generation
    recall: float  # share of the exact best k found, mean, in [0, 1]
    lowest_recall: float
    vectors_p50_ms: float | None = None  # of the same queries without words, the stage of thresholds not counted

    @property
    def added_ms(self) -> float | None:
        """What thresholds and words add to the median."""
        return None if self.vectors_p50_ms is None else round(self.latency.p50_ms - self.vectors_p50_ms, 3)


@dataclass(frozen=True)
class Cold:
    """A fresh process on files that were dropped from the page cache."""

    open_seconds: float
    first_seconds: float  # from there to the first answer: checking files, reading all document vectors, one search


@dataclass(frozen=True)
class ScaleRecord:
    """An index of one size, grown from a real one: what it takes, how quickly it answers, what it finds."""

    kind: ClassVar[str] = "scale"

    source: str  # name of the real index, and its checksum
    is_quick: bool
    n_documents: int
    n_real: int  # of them
    n_chunks: int
    width: int
    factory: str
    n_lists: int  # 0 where the factory has none
    nprobe: int
    generation_recall: float  # as measured before it was published
    memory_bytes: int | None  # budget of the process that published, by which the factory was chosen
    cap_bytes: int | None  # that each process was held to
    cap_kind: str  # by what; "" without a cap
    k: int
    threads: int
    workers: int  # that asked at once for `queries_per_second`
    calibration: Calibration  # how the made documents were made, and how like the real ones they are
    neighbours: CandidateLists  # of the grown index
    growth: GrowthCost
    disk: dict[str, int]  # bytes of catalog, shards, ann, postings and reference
    cold: Cold
    asked: dict[str, Asked]  # by "real" and "synthetic"
    queries_per_second: float  # many at once
    memory: dict[str, Memory]  # of the processes "grow", "publish", "search" and "batch"
    gflops: float  # that this machine multiplied in float32 with as many threads, right after the queries
    origin: Origin
    words_bytes: int | None = None  # of `disk`: term counts, postings and reference
    texts: str = ""  # index that the words of made documents were drawn from; empty for copies of the originals'

    @property
    def added_share(self) -> float | None:
        """What thresholds and words add to the size of an index of vectors alone, as a share of that."""
        if self.words_bytes is None:
            return None
        return round(self.words_bytes / (sum(self.disk.values()) - self.words_bytes), 4)

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        capped = f"-cap{round(self.cap_bytes / 2**20)}m" if self.cap_bytes else ""
        quick = "-quick" if self.is_quick else ""
        drawn = f"-words-{self.texts}" if self.texts else ""
        return f"scale-{self.source.partition('@')[0]}{drawn}-{self.n_chunks}{capped}{quick}"
