"""Records of the studies of partitions: values only, one file a run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measuring.timing import Percentiles
from benchmarks.record_file import Recorded
from indexer.origin import Origin


@dataclass(frozen=True)
class PartitionRow:
    """Differences between the answers of a partitioned index and those of one index, over the same queries."""

    way: str  # "here"; "http" or "ray", a server or an actor for each partition, here too; or "postgresql", schemas
    n_partitions: int
    n_queries: int
    n_other_hits: int  # queries with another set of hits
    n_other_orders: int
    n_other_counts: int  # queries where n_found, n_evident, n_searched or the status differs
    largest_score: float  # difference of the scores of a hit
    largest_part: float  # difference of the contributions of a section pair
    wall_ms: float  # a query, mean; the servers and the search share the cores
    cpu_ms: float  # of the process that searches


@dataclass(frozen=True)
class PartitionRecord(Recorded, kind="partitions"):
    """Whether partitions give the same results as one index."""

    corpus: str
    n_documents: int
    k: int
    rows: list[PartitionRow]
    seconds: float
    origin: Origin
    is_exact: bool = False  # by --exact

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        return f"partitions-{self.corpus}{'-exact' if self.is_exact else ''}"


@dataclass(frozen=True)
class FailureRow:
    """Queries during which one partition failed in one way."""

    fault: str
    n_failures: int
    n_errors: int  # queries that ended with an error which names the partition, without `partial`
    n_partial: int  # queries with `partial` whose result has the status partial
    n_whole: int  # complete answers: the partition had no hit to show in the round that would have failed
    n_wrong: int  # answers that are not those of the other partitions, or errors that name another one
    n_late: int  # queries that took longer than the deadlines of their rounds, and a second
    longest_seconds: float


@dataclass(frozen=True)
class FailureRecord(Recorded, kind="partition_failures", file="partition-failures-{corpus}"):
    """Failures of a partition during queries."""

    corpus: str
    n_partitions: int
    deadline_seconds: float  # of a round
    rows: list[FailureRow]
    seconds: float
    origin: Origin


@dataclass(frozen=True)
class PlannedRow:
    """An index in `n_partitions` partitions, searched by one process on one machine."""

    n_partitions: int
    factory: str  # FAISS factory string of the first partition; "" for none
    n_chunks: int  # of the first partition
    split_seconds: float  # copying, FAISS indexes and postings
    split_mib: float  # peak memory of the process that split, pages of files left out
    disk_bytes: int  # of all partitions and the reference
    latency: Percentiles
    cpu_ms: float  # of a query, mean
    rank_ms: float  # processor time of ranking in the first partition alone, median
    own_bytes: int  # of the process that searches, mapped files left out
    recall: float  # mean share of the exact hits found
    query_bytes: int  # of the query to all partitions, if they were served
    rank_bytes: int  # of the ranks back from all partitions
    shown_bytes: int  # of the documents of the hits back


@dataclass(frozen=True)
class PartitionPlanRecord(Recorded, kind="partition_plan", file="partition-plan-{index}-{n_chunks}"):
    """Costs of an index in several numbers of partitions, from which `longmatch plan --partitions` computes."""

    index: str
    n_documents: int
    n_chunks: int
    width: int
    k: int
    n_queries: int
    rows: list[PlannedRow]  # the first is not partitioned
    seconds: float
    origin: Origin


@dataclass(frozen=True)
class RayOverhead:
    """The cost of a job on Ray compared with `build`, over the same documents on one machine."""

    n_documents: int
    encoder: str
    build_cpu_seconds: float  # of all processes
    build_wall_seconds: float
    ray_cpu_seconds: float
    ray_wall_seconds: float
    corpus: str = "demo"


@dataclass(frozen=True)
class RayKillRecord(Recorded, kind="ray_kills", file="ray-kills-{corpus}"):
    """An index that was made on Ray while processes were killed, compared with an undisturbed one."""

    corpus: str
    n_documents: int
    n_chunks: int
    n_partitions: int
    n_encoder_kills: int
    n_writer_kills: int
    n_driver_kills: int
    n_missing: int  # documents without vectors at the end
    n_twice: int  # documents that were encoded again after their commit
    n_other_documents: int  # documents that differ in a byte
    n_other_shards: int  # files that differ
    n_other_hits: int  # queries with other hits or scores
    ray: str  # its version
    overhead: RayOverhead | None
    seconds: float
    origin: Origin
