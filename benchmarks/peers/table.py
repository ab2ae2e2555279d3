"""The record of a run of peers, and their table beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.measuring.latency import Percentiles
from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.peers.registry import OURS
from benchmarks.record_file import name_of
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import Settings
from indexer.training.origin import Origin


@dataclass(frozen=True)
class PeerRun:
    """One peer: what it found, and what that took."""

    peer: str  # with the length of its chunks where a run has several: st-chunks@128
    versions: dict[str, str]  # of its packages; empty for ours
    encoder: str  # name@sha256 of its weights
    settings: Settings
    keeps_text: bool
    metrics: dict[str, float]  # means, in [0, 1]
    per_query: dict[str, list[float]]  # metric to its values, in the order of `PeersRecord.query_ids`
    n_documents: int
    tokens_per_document: float  # that it reads, mean; special ones left out
    load_seconds: float  # of imports and the encoder; no part of building
    build_seconds: float
    documents_per_second: float
    open_seconds: float
    latency: Percentiles
    index_bytes: int
    start_mib: float  # resident with imports and encoder, before building
    build_peak_mib: float
    search_peak_mib: float
    commit: str = ""  # at which it was measured, where it is not that of the record


@dataclass(frozen=True)
class PeersRecord:
    """Peers on the same documents, with the same weights, threads and queries, one after another on one machine."""

    kind: ClassVar[str] = "peers"

    task: str
    dataset: str  # name@checksum
    split: str
    is_quick: bool  # a small part of the task: shows that all works, not what is good
    limit: int  # queries asked, the first of the split; 0 for all
    k: int  # depth of the rankings
    n_queries: int
    encoder: str  # name@sha256
    dtype: str
    threads: int
    query_ids: list[str]
    peers: list[PeerRun]
    origin: Origin
    failed: dict[str, str] = field(default_factory=dict)  # peers, and why they have no result

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        encoder = self.encoder.partition("@")[0]
        given = (self.dtype, f"threads{self.threads}", f"k{self.k}", f"first{self.limit}" if self.limit else "")
        return name_of(self.kind, self.task, self.split, encoder, *given, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Sized`."""
        return {"peers": len(self.peers), "queries": self.n_queries}


VALID = "valid"  # the split that settings are chosen on
_MIB = 1 << 20
_CHOSEN = "†"
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, and a bootstrap interval over queries. p: two-sided paired randomisation "
    f"test of {PRIMARY} against {OURS}, adjusted after Holm over the peers of a task. Latency: a whole document in, a "
    "ranking out, encoding included. Tokens: read of a document, mean. Memory is the most resident in the process of "
    "its own that builds, and in the one that searches. In parentheses: the peer's figure divided by that of "
    f"{OURS}, where both were measured at one commit. * keeps the documents' text. @N: in chunks of N tokens. "
    f"{_CHOSEN} of this program's chunk lengths and aggregates the best on the split {VALID}, where they were "
    f"measured too; {OURS} has the constants that were chosen on the valid splits of four corpora; nothing else was "
    "tuned, for anyone."
)


def peers_table(records: Sequence[PeersRecord]) -> str:
    """A block of rows a record, in the order of its peers; ratios and p-values where it holds ours.

    Records of the split valid only say which settings of a peer were the best, unless there are no others.
    """
    head = ["Task (queries)", "Peer", f"{PRIMARY} [95 %]", *METRICS[1:], "p", "Tokens", "Documents/s"]
    head += ["p50 / p95 / p99, ms", "Index, MiB", "Memory building, MiB", "Memory searching, MiB"]
    shown = [record for record in records if record.split != VALID] or list(records)
    rows = [row for record in shown for row in _rows(record, chosen_on_valid(record, records))]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *_conditions(shown), "", *origins(shown)])


def chosen_on_valid(record: PeersRecord, records: Sequence[PeersRecord]) -> set[str]:
    """The peers that have the best mean of all settings of their program on valid, with the same weights.

    None of a program of which one setting was tried.
    """
    best: dict[str, dict[str, float]] = {}
    for other in records:
        is_same = (other.task, other.encoder, other.dtype) == (record.task, record.encoder, record.dtype)
        if is_same and other.split == VALID:
            for run in other.peers:
                program = run.peer.partition("@")[0].removesuffix("-sum")
                best.setdefault(program, {})[run.peer] = run.metrics[PRIMARY]
    return {max(tried, key=tried.__getitem__) for tried in best.values() if len(tried) > 1}


def _rows(record: PeersRecord, chosen: set[str]) -> list[list[str]]:
    ours = next((run for run in record.peers if run.peer == OURS), None)
    ps = p_cells([_p(run, ours, record.origin.seed) for run in record.peers])
    first = f", first {record.limit}" if record.limit else ""
    return [
        [
            f"{record.task}, {record.split}{first} ({record.n_queries})",
            run.peer + _CHOSEN * (run.peer in chosen) + "*" * run.keeps_text,
            _quality(run, record.origin.seed),
            *(f"{run.metrics[name]:.3f}" for name in METRICS[1:]),
            p,
            f"{run.tokens_per_document:,.0f}",
            _measured(run, beside, lambda one: one.documents_per_second, ".1f"),
            _latency(run, beside),
            _measured(run, beside, lambda one: one.index_bytes / _MIB, ".1f"),
            _measured(run, beside, lambda one: one.build_peak_mib, ".0f"),
            _measured(run, beside, lambda one: one.search_peak_mib, ".0f"),
        ]
        for run, p in zip(record.peers, ps, strict=True)
        for beside in [ours if ours is not None and ours.commit == run.commit else None]
    ]


def _p(run: PeerRun, ours: PeerRun | None, seed: int) -> float | None:
    if ours is None or run is ours:
        return None
    return randomization_p(run.per_query[PRIMARY], ours.per_query[PRIMARY], seed=seed)


def _quality(run: PeerRun, seed: int) -> str:
    low, high = bootstrap_interval(run.per_query[PRIMARY], seed=seed)
    return f"{run.metrics[PRIMARY]:.3f} [{low:.3f}, {high:.3f}]"


def _measured(run: PeerRun, ours: PeerRun | None, of: Callable[[PeerRun], float], form: str) -> str:
    return f"{of(run):{form}}{_ratio(of(run), of(ours) if ours else None)}"


def _latency(run: PeerRun, ours: PeerRun | None) -> str:
    times = (run.latency.p50_ms, run.latency.p95_ms, run.latency.p99_ms)
    ratio = _ratio(run.latency.p50_ms, ours.latency.p50_ms if ours else None)
    return " / ".join(f"{time:.1f}" for time in times) + ratio


def _ratio(value: float, ours: float | None) -> str:
    return f" ({value / ours:.2f})" if ours else ""


def _conditions(records: Sequence[PeersRecord]) -> list[str]:
    """A line a record: what its peers had in common, their versions and other weights, and what has no result."""
    lines = []
    for record in records:
        packages = {name: version for run in record.peers for name, version in run.versions.items()}
        versions = "".join(f", {name} {version}" for name, version in sorted(packages.items()))
        others = "".join(f" {run.peer}: {run.encoder}." for run in record.peers if run.encoder != record.encoder)
        threads = f"{record.threads} thread" + "s" * (record.threads != 1)
        n_documents = max((run.n_documents for run in record.peers), default=0)
        lines.append(
            f"- {record.task}, {record.split}: {n_documents:,} documents, rankings to depth {record.k}, "
            f"{record.encoder} in {record.dtype}, {threads}{versions}.{others}"
            + "".join(f" {run.peer} at commit {run.commit[:10]}." for run in record.peers if run.commit)
            + "".join(f" No result: {name}." for name in record.failed)
            + " A small part of the task, cut short: it shows that all works, not what is good." * record.is_quick
        )
    return lines
