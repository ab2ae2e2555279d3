"""What the durability and scale programs record: counts of cases, and how each ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.record_file import name_of
from indexer.training.origin import Origin


@dataclass(frozen=True)
class KillRecord:
    """Runs of `longmatch index` that were killed, gone on with, and held against one that was not.

    The counts from `n_lost` to `n_looks_refused` are 0 where all is well.
    """

    kind: ClassVar[str] = "kill"

    encoder: str  # name@fingerprint
    n_documents: int
    n_chunks: int
    clean_seconds: float
    clean_steps: dict[str, int]  # durable steps of an uninterrupted run, by kind
    n_timed_kills: int
    n_fault_point_kills: int  # before and after steps
    n_second_kills: int  # of runs that went on after a kill
    last_steps: dict[str, int]  # the last durable step before a timed kill: in which part of a run it fell
    n_looks: int  # times that the index was opened, during runs and after kills
    n_committed_seen: int  # documents seen before a kill, all cases together
    n_lost: int  # of those, gone or changed at a later look
    n_encoded_twice: int  # of those, with another catalog id at a later look or in a report
    n_different_documents: int  # at the end, against the uninterrupted run
    n_different_vectors: int  # documents with a byte that differs
    largest_vector_difference: float
    n_different_hits: int
    largest_score_difference: float
    n_queries: int
    n_unclean: int  # cases that `verify` found something in at the end
    n_looks_refused: int
    n_not_finished: int  # cases whose last run ended with an error
    problems: list[str]
    origin: Origin
    way: str = "all"  # of encoding, see `benchmarks.durability.interrupted.WAYS`

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return name_of("kill", "" if self.way == "all" else self.way, f"seed{self.origin.seed}")


@dataclass(frozen=True)
class DamageCounts:
    """Cases of one kind of file."""

    n_cases: int
    n_refused: int  # opening or asking raised an error of the engine: found before anything was answered
    n_right: int  # answered, and rightly
    n_earlier: int  # of those, as after an earlier commit: what only stood in a damaged log is lost
    n_verified: int  # `verify` reported it and named the file
    n_mended: int  # after `repair`, or the next run of a killed writer, all was clean and every hit as before
    n_given_up: int  # that was refused with an error of the engine
    n_lost_exactly: int  # `repair` named exactly the documents whose vectors were lost
    n_reencoded: int  # `repair --encode` brought the same hits back
    n_crashed: int  # a signal, a hang, or an error that is not the engine's
    n_wrong: int  # answered otherwise than before, at any moment


@dataclass(frozen=True)
class DamageRecord:
    """Copies of an index with one damaged file each."""

    kind: ClassVar[str] = "damage"

    encoder: str  # name@fingerprint
    n_documents: int
    n_chunks: int
    n_queries: int
    factories: list[str]
    n_cases: int
    counts: dict[str, DamageCounts]  # by kind of file
    by_damage: dict[str, DamageCounts]  # by kind of damage
    largest_score_difference: float  # after `repair --encode`
    problems: list[str]
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return "damage"


@dataclass(frozen=True)
class MemoryRun:
    """Memory and time of indexing one corpus, in a process of its own."""

    corpus: str
    encoder: str
    n_documents: int
    n_chunks: int
    n_tokens: int
    n_chars: int
    seconds: float
    documents_per_second: float
    chunks_per_second: float
    tokens_per_second: float
    encode_share: float  # of the time until the last commit
    commit_share: float  # shards and catalog
    rss_start_mib: float  # encoder loaded, nothing read
    rss_peak_mib: float  # until the last commit
    rss_peak_generation_mib: float  # while the FAISS index is built, which holds its vectors
    slope_kib_per_1000_documents: float  # least squares over the last three quarters of the documents
    rss_mib_by_documents: list[tuple[int, float]]  # thinned


@dataclass(frozen=True)
class MemoryRecord:
    """Whether memory grows with the corpus, and whether the catalog can keep up with an encoder."""

    kind: ClassVar[str] = "memory"

    runs: list[MemoryRun]
    sample_ms: int
    real_tokens_per_second: int  # of a real encoder on such a machine, to compare with
    headroom: dict[str, float]  # tokens a second with a free encoder, in multiples of the real one's, by corpus
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return "memory"
