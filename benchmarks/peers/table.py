"""The details of a run of a peer, and the table of peers and longmatch, computed from runs only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.markdown import compared, interval_text, markdown, origins
from benchmarks.measuring.isolation import Percentiles
from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.peers.peer import OURS, PEERS
from benchmarks.runs import Run

VALID = "valid"  # the split that settings are chosen on
_MIB = 1 << 20
_CHOSEN = "†"
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, with a bootstrap interval over queries. p: two-sided paired "
    f"randomisation test of {PRIMARY} against {OURS}, adjusted by Holm's method over the peers of a task. Tokens: mean "
    "number read per document. Latency: from a whole document to a ranking, with encoding. Memory: peak of the "
    "resident memory of the process that builds, and of the process that searches. In parentheses: the figure of the "
    f"peer divided by that of {OURS}, if both were measured on the same machine. st-chunks and "
    "st-chunks-sum search the same files. * stores the texts of documents. @N: in chunks of N tokens. "
    f"{_CHOSEN} the best of the chunk lengths and aggregates of this program on the split {VALID}, where these were "
    f"also measured. {OURS} has the constants that were chosen on the valid splits of four corpora. No other setting "
    "of any program was tuned."
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


def peers_table(runs: Sequence[Run]) -> str:
    """A block of rows for each dataset and variant, in the order of `PEERS`; with ratios and p-values to longmatch.

    Runs of the split valid only mark the best settings of a peer, unless there are no other runs. Ratios and p-values
    need a run of longmatch in the block.
    """
    head = ["Task (queries)", "Peer", f"{PRIMARY} [95 %]", *METRICS[1:], "p", "Tokens", "Documents/s"]
    head += ["p50 / p95 / p99, ms", "Index, MiB", "Memory building, MiB", "Memory searching, MiB"]
    shown = sorted([run for run in runs if run.split != VALID] or runs, key=_place)
    ours = {_block(run): run for run in shown if run.system == OURS}
    ps = compared(shown, lambda run: ours.get(_block(run)), PRIMARY)
    chosen = chosen_on_valid(runs)
    rows = [_row(run, p, ours.get(_block(run)), chosen) for run, p in zip(shown, ps, strict=True)]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *_conditions(shown), "", *origins(shown)]) if shown else ""


def chosen_on_valid(runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Corpus and peer of the settings with the best mean on valid among all settings of a program.

    Programs with only one setting are left out.
    """
    tried: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for run in runs:
        if run.split == VALID:
            program = run.system.partition("@")[0].removesuffix("-sum")
            tried[run.corpus, program][run.system] = run.mean(PRIMARY)
    return {(corpus, max(own, key=own.__getitem__)) for (corpus, _), own in tried.items() if len(own) > 1}


def _block(run: Run) -> tuple[str, str, str]:
    return run.dataset, run.split, run.variant


def _place(run: Run) -> tuple[tuple[str, str, str], int, int]:
    name, _, window = run.system.partition("@")
    return _block(run), list(PEERS).index(name), int(window or 0)


def _row(run: Run, p: str, ours: Run | None, chosen: set[tuple[str, str]]) -> list[str]:
    own = run.details_as(PeerDetails)
    beside = ours.details_as(PeerDetails) if ours is not None and run.origin.machine == ours.origin.machine else None

    def measured(of: Callable[[PeerDetails], float], form: str) -> str:
        return f"{of(own):{form}}{_ratio(of(own), of(beside) if beside else None)}"

    times = " / ".join(f"{time:.1f}" for time in (own.latency.p50_ms, own.latency.p95_ms, own.latency.p99_ms))
    return [
        f"{run.corpus}, {run.split} ({len(run.cases)})",
        run.system + _CHOSEN * ((run.corpus, run.system) in chosen) + "*" * own.keeps_text,
        interval_text(run, PRIMARY),
        *(f"{run.mean(name):.3f}" for name in METRICS[1:]),
        p,
        f"{own.tokens_per_document:,.0f}",
        measured(lambda one: one.documents_per_second, ".3g"),
        times + _ratio(own.latency.p50_ms, beside.latency.p50_ms if beside else None),
        measured(lambda one: one.index_bytes / _MIB, ".1f"),
        measured(lambda one: one.build_peak_mib, ".0f"),
        measured(lambda one: one.search_peak_mib, ".0f"),
    ]


def _ratio(value: float, ours: float | None) -> str:
    return f" ({value / ours:.2f})" if ours else ""


def _conditions(runs: Sequence[Run]) -> list[str]:
    """A line for each block: the shared conditions of its peers, their versions, and parameters that differ."""
    blocks: Mapping[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        blocks[_block(run)].append(run)
    lines = []
    for block in blocks.values():
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
