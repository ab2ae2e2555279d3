"""The table of other programs and longmatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.isolation import Percentiles
from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.runs import Run
from benchmarks.tables.findings import OURS
from benchmarks.tables.pivot import Cell, compared, grouped, interval_text, page, pivot

PEERS = (
    *(OURS, "st-first-256", "st-first-512", "st-chunks", "st-chunks-sum"),
    *("txtai", "late-interaction", "lancedb"),
)  # in the order of their rows
_MIB = 1 << 20
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, with a bootstrap interval over queries. p: two-sided paired "
    f"randomisation test of {PRIMARY} against {OURS}, adjusted by Holm's method over the peers of a task. Tokens: mean "
    "number read per document. Latency: from a whole document to a ranking, with encoding. Memory: peak of the "
    "resident memory of the process that builds, and of the process that searches. In parentheses: the figure of the "
    f"peer divided by that of {OURS}, if both were measured on the same machine. st-chunks and "
    "st-chunks-sum search the same files. * stores the texts of documents. @N: in chunks of N tokens. "
    f"{OURS} has the constants that were chosen on the valid splits of four corpora. No setting of another program was "
    "tuned."
)


@dataclass(frozen=True)
class PeerDetails:
    """The cost of building and searching; the seconds of building are in the run itself."""

    shared: str  # name@sha256 of the parameters that all peers were given
    versions: dict[str, str]  # of the packages; empty for longmatch
    dtype: str
    threads: int
    depth: int  # of the rankings
    keeps_text: bool
    n_documents: int
    tokens_per_document: float  # mean of the tokens that it reads; special tokens not counted
    load_seconds: float  # of imports and the encoder; not part of building
    documents_per_second: float
    open_seconds: float
    latency: Percentiles
    index_bytes: int
    start_mib: float  # resident memory with imports and encoder, before building
    build_peak_mib: float
    search_peak_mib: float


@dataclass(frozen=True)
class _Row:
    """A peer, beside longmatch on the same machine if that was measured."""

    run: Run
    own: PeerDetails
    beside: PeerDetails | None

    def ratio(self, of: Callable[[PeerDetails], float]) -> str:
        return f" ({of(self.own) / of(self.beside):.2f})" if self.beside and of(self.beside) else ""

    def measured(self, of: Callable[[PeerDetails], float], form: str) -> str:
        """A figure, with its ratio to that of longmatch."""
        return f"{of(self.own):{form}}{self.ratio(of)}"

    @property
    def times(self) -> str:
        """The percentiles of the latency, with the ratio of the median."""
        latency = self.own.latency
        times = " / ".join(f"{time:.1f}" for time in (latency.p50_ms, latency.p95_ms, latency.p99_ms))
        return times + self.ratio(lambda details: details.latency.p50_ms)


def peers_table(runs: Sequence[Run]) -> str:
    """A block of rows for each dataset and variant, in the order of `PEERS`; with ratios and p-values to longmatch.

    Ratios and p-values need a run of longmatch in the block.
    """
    shown = sorted(runs, key=_place)
    if not shown:
        return ""
    ours = {_block(run): run for run in shown if run.system == OURS}
    columns: dict[str, Cell[_Row] | Sequence[str]] = {
        "Task (queries)": lambda row: f"{row.run.corpus}, {row.run.split} ({len(row.run.cases)})",
        "Peer": lambda row: row.run.system + "*" * row.own.keeps_text,
        f"{PRIMARY} [95 %]": lambda row: interval_text(row.run, PRIMARY),
        **{name: partial(_mean, name) for name in METRICS[1:]},
        "p": compared(shown, lambda run: ours.get(_block(run)), PRIMARY),
        "Tokens": lambda row: f"{row.own.tokens_per_document:,.0f}",
        "Documents/s": lambda row: row.measured(lambda details: details.documents_per_second, ".3g"),
        "p50 / p95 / p99, ms": lambda row: row.times,
        "Index, MiB": lambda row: row.measured(lambda details: details.index_bytes / _MIB, ".1f"),
        "Memory building, MiB": lambda row: row.measured(lambda details: details.build_peak_mib, ".0f"),
        "Memory searching, MiB": lambda row: row.measured(lambda details: details.search_peak_mib, ".0f"),
    }
    rows = [_row(run, ours.get(_block(run))) for run in shown]
    return page(pivot(rows, columns), [_NOTE, "\n".join(_conditions(shown))], shown)


def _mean(name: str, row: _Row) -> str:
    return f"{row.run.mean(name):.3f}"


def _row(run: Run, ours: Run | None) -> _Row:
    is_comparable = ours is not None and run.origin.machine == ours.origin.machine
    return _Row(run, run.details_as(PeerDetails), ours.details_as(PeerDetails) if ours and is_comparable else None)


def _block(run: Run) -> tuple[str, str, str]:
    return run.dataset, run.split, run.variant


def _place(run: Run) -> tuple[tuple[str, str, str], int, int]:
    name, _, window = run.system.partition("@")
    return _block(run), PEERS.index(name), int(window or 0)


def _conditions(runs: Sequence[Run]) -> list[str]:
    """A line for each block: the shared conditions of its peers, their versions, and parameters that differ."""
    lines = []
    for block in grouped(runs, _block).values():
        first, details = block[0], [run.details_as(PeerDetails) for run in block]
        packages = {name: version for one in details for name, version in one.versions.items()}
        versions = "".join(f", {name} {version}" for name, version in sorted(packages.items()))
        others = "".join(
            f" {run.system}: {run.encoder}."
            for run, own in zip(block, details, strict=True)
            if run.encoder != own.shared
        )
        threads = f"{details[0].threads} thread" + "s" * (details[0].threads != 1)
        lines.append(
            f"- {first.corpus}, {first.split}: {max(one.n_documents for one in details):,} documents, rankings to "
            f"depth {details[0].depth}, {details[0].shared} in {details[0].dtype}, {threads}{versions}.{others}"
        )
    return lines
