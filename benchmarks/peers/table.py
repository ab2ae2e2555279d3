"""Peers beside each other, and beside ours in the same run; drawn from records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.peers.record import PeerRun, PeersRecord
from benchmarks.peers.registry import OURS
from benchmarks.significance import bootstrap_interval, randomization_p

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
