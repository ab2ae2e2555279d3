"""Records of the programs of this package, and their results as lines of Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from benchmarks.record_file import Recorded
from indexer.origin import Origin


class Promised(Protocol):
    """A record of a promise that must hold."""

    @property
    def origin(self) -> Origin:
        """The origin of the record."""

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown, with the counts that keep or break a promise."""


@dataclass(frozen=True)
class ExactnessRecord(Recorded, kind="exactness"):
    """Whether scores are the sums of their parts, and certified rankings the true ones."""

    index: str
    factory: str
    n_documents: int
    k: int
    n_queries: int
    n_hits: int
    largest_sum_error: float
    n_certified: int  # rankings compared with the double loop
    n_ranked_otherwise: int  # certified rankings that differ, except for ties within 1e-6
    largest_score_error: float
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        return f"exactness-{self.index}-{self.factory.replace(',', '_')}"

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown."""
        certified = (
            f"; {self.n_certified} certified rankings, {self.n_ranked_otherwise} of them different from that of a "
            f"double loop over documents and chunks, scores equal within {self.largest_score_error:.0e}"
        )
        return [
            f"- `{self.index}` under {self.factory}: {self.n_queries} queries, {self.n_hits:,} hits; contributions "
            f"sum to the score within {self.largest_sum_error:.0e}{certified if self.n_certified else ''}."
        ]


@dataclass(frozen=True)
class ConcurrencyRecord(Recorded, kind="concurrency", file="concurrency{seeded}"):
    """Readers of an index beside a writer, each in a process of its own."""

    n_documents: int  # at the beginning
    minutes: float
    n_readers: int
    changes: dict[str, int]  # commands of the writer, by kind
    n_queries: int  # beside the writer
    n_refreshes: int  # that moved to a newer commit
    n_errors: int  # of readers and writer
    n_findings: int  # of `verify` at the end
    n_idle_queries: int  # of the same readers, without a writer
    idle_p50_ms: float  # by the clock
    idle_p99_ms: float
    p50_ms: float
    p99_ms: float
    refresh_p50_ms: float  # of refreshes that moved to a newer commit
    refresh_p99_ms: float
    problems: list[str]
    origin: Origin

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown."""
        return [
            f"- {self.n_readers} readers and a writer for {self.minutes:g} minutes, {sum(self.changes.values()):,} "
            f"changes ({', '.join(f'{n} {name}' for name, n in self.changes.items())}), {self.n_queries:,} queries, "
            f"{self.n_refreshes:,} refreshes: {self.n_errors} errors. Queries: p50 {self.p50_ms} ms, p99 "
            f"{self.p99_ms} ms; without the writer p50 {self.idle_p50_ms} ms, p99 {self.idle_p99_ms} ms."
        ]


@dataclass(frozen=True)
class RowChecksRecord(Recorded, kind="row_checks", file="row-checks-{n_documents}documents{seeded}"):
    """Costs of checksums of catalog rows: processor time with and without them, in milliseconds, medians of rounds."""

    n_documents: int  # in an index of words alone
    catalog_bytes: int
    n_rounds: int
    sealed: dict[str, tuple[float, float]]  # with and without, of "opening" and "query"
    unsealed: dict[str, tuple[float, float]]  # of an index whose writer was killed
    origin: Origin

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown."""
        steps = [
            f"{step} of {name} index {times[0]} ms and {times[1]} ms"
            for name, found in (("a sealed", self.sealed), ("an unsealed", self.unsealed))
            for step, times in found.items()
        ]
        line = f"- Checksums of rows, {self.n_documents:,} documents, processor time with and without checksums: "
        return [f"{line}{'; '.join(steps)}."]


class Outcome(StrEnum):
    """The outcome of reading a file; the worst counts where a file gives several."""

    READ = "read"
    REFUSED = "refused"  # with a reason that the reader foresaw
    FAILED = "failed"  # with the exception of a parser as the reason
    LIMIT = "over a limit"  # of time or memory, and recorded with that reason
    DIED = "process died"  # the process that reads; recorded with that reason
    HUNG = "hung"  # no answer within ten times the limit of time, by the clock
    LOST = "lost"  # no result, or the indexing process failed


@dataclass(frozen=True)
class FuzzRow:
    """The damaged files of one format."""

    format: str  # suffix
    n_files: int
    outcomes: dict[str, int]  # by `Outcome`
    slowest_seconds: float  # by the clock, of the slowest file
    reasons: list[str]  # the first distinct ones of files that were neither read nor foreseen, with the file's number


@dataclass(frozen=True)
class FuzzRecord(Recorded, kind="fuzz", file="fuzz-{n_files}{quick}"):
    """The outcomes of reading damaged files."""

    n_files: int
    read_seconds: float  # limit of processor time
    read_memory_bytes: int
    rows: list[FuzzRow]
    seconds: float
    origin: Origin
    is_quick: bool = False
