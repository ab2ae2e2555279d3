"""What the programs of this room record, and the promise that each record keeps or breaks, as a line of Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from benchmarks.record_file import name_of
from indexer.training.origin import Origin

_KILLED = {
    "all": "of indexing {} documents",
    "later": "of indexing {} documents, words first and vectors then",
    "queries": "of queries that encode some of {} documents, and of encoding the rest",
}


class Promised(Protocol):
    """A record of what must hold."""

    @property
    def origin(self) -> Origin:
        """Where it comes from."""

    @property
    def promises(self) -> list[str]:
        """Lines for people, with the counts that keep or break a promise."""


@dataclass(frozen=True)
class ExactnessRecord:
    """Whether scores are the sums of their parts, and certified rankings the true ones."""

    kind: ClassVar[str] = "exactness"

    index: str
    factory: str
    n_documents: int
    k: int
    n_queries: int
    n_hits: int
    largest_sum_error: float
    n_certified: int  # rankings compared with the double loop
    n_ranked_otherwise: int  # of them; ties within 1e-6 aside
    largest_score_error: float
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"exactness-{self.index}-{self.factory.replace(',', '_')}"

    @property
    def promises(self) -> list[str]:
        """Lines for people."""
        line = (
            f"- `{self.index}` under {self.factory}: {self.n_queries} queries, {self.n_hits:,} hits, contributions "
            f"sum to the score within {self.largest_sum_error:.0e}"
        )
        if self.n_certified:
            line += (
                f"; {self.n_certified} certified rankings, {self.n_ranked_otherwise} of them other than a double "
                f"loop over documents and chunks gives, scores within {self.largest_score_error:.0e}"
            )
        return [f"{line}."]


@dataclass(frozen=True)
class KillRecord:
    """Runs of `longmatch index` that were killed, gone on with, and compared with one that was not.

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
    n_different_documents: int  # at the end, compared with the uninterrupted run
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
    way: str = "all"  # of encoding, see `benchmarks.store.kill.WAYS`

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return name_of("kill", "" if self.way == "all" else self.way, f"seed{self.origin.seed}")

    @property
    def promises(self) -> list[str]:
        """Lines for people."""
        return [
            f"- {self.n_timed_kills} kills at random moments {_KILLED[self.way].format(self.n_documents)}, "
            f"{self.n_fault_point_kills} before and after each durable step and {self.n_second_kills} of runs that "
            f"went on: {self.n_lost} documents lost, {self.n_encoded_twice} encoded twice, "
            f"{self.n_different_vectors} with another vector in the end, "
            f"{self.n_different_hits} other hits, {self.n_unclean} indexes unclean."
        ]


@dataclass(frozen=True)
class DamageCounts:
    """Cases of one kind of file."""

    n_cases: int
    n_refused: int  # opening or searching raised an error of the engine: found before anything was answered
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
    name: ClassVar[str] = "damage"  # of the file, without suffix

    @property
    def promises(self) -> list[str]:
        """Lines for people."""
        counts = self.counts.values()
        wrong, crashed = sum(one.n_wrong for one in counts), sum(one.n_crashed for one in counts)
        return [
            f"- {self.n_cases} copies with a damaged file: {wrong} wrong answers, {crashed} crashes.",
            *(
                f"  - {kind}: {one.n_cases} cases, {one.n_refused} refused before parsing, {one.n_verified} found by "
                f"`verify`, {one.n_mended + one.n_reencoded} mended."
                for kind, one in self.counts.items()
                if one.n_verified
            ),
        ]


class Outcome(StrEnum):
    """What becomes of a file that is read; the worst one counts where a file gives several."""

    READ = "read"
    REFUSED = "refused"  # with a reason that the reader foresaw
    FAILED = "failed"  # with the exception of a parser as the reason
    LIMIT = "over a limit"  # of time or memory, and recorded with that reason
    DIED = "process died"  # the one that reads; recorded with that reason
    HUNG = "hung"  # no answer within ten times the limit of time, by the clock
    LOST = "lost"  # no result, or the process that indexes failed


@dataclass(frozen=True)
class FuzzRow:
    """The damaged files of one format."""

    format: str  # suffix
    n_files: int
    outcomes: dict[str, int]  # by `Outcome`
    slowest_seconds: float  # by the clock, of the slowest file
    reasons: list[str]  # the first distinct ones of files that were neither read nor foreseen, with the file's number


@dataclass(frozen=True)
class FuzzRecord:
    """Readers with damaged files."""

    kind: ClassVar[str] = "fuzz"

    n_files: int
    read_seconds: float  # limit of processor time
    read_memory_bytes: int
    rows: list[FuzzRow]
    seconds: float
    origin: Origin
    is_quick: bool = False

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"fuzz-{self.n_files}" + ("-quick" if self.is_quick else "")
