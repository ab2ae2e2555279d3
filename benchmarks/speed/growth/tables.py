"""The tables of grown indexes and of documents added to them, drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import markdown, origins
from benchmarks.speed.growth.neighbours import QUANTILES
from benchmarks.speed.records import AdditionRecord, ScaleRecord, Stage

_MEDIAN = QUANTILES.index(0.5)
_MIB = 2**20


def scale_table(records: Sequence[ScaleRecord]) -> str:
    """A row for each size and kind of query."""
    head = ["Index", "Documents", "Chunks", "Nearest", "Factory", "nprobe", "Queries", "p50 / p99, ms", "Stages, ms"]
    head += ["Recall", "Cold, s", "Queries/s", "Search, MiB", "Disk, MiB", "Grow + publish, s", "Cap, MiB", "GFLOP/s"]
    rows = [_row(record, kind) for record in _by_size(records) for kind in record.asked]
    note = (
        "Nearest: median cosine of a chunk and the nearest chunk of another document. Queries are real and synthetic "
        "documents of the index, each left out of its own hits. Recall: of the exact best targets. Cold: opening, and "
        "the first answer, without page cache. Search, MiB: private memory, then memory with pages of mapped files. "
        "Cap: limit of the private memory of each process (RLIMIT_DATA). GFLOP/s: of float32 products of square "
        "matrices on the same number of threads in the same run, to compare with other machines and other runs."
    )
    likeness = [_likeness(record) for record in {record.source: record for record in records}.values()]
    added = [_added(record, record.words_bytes) for record in _by_size(records) if record.words_bytes is not None]
    return "\n".join([*markdown(head, rows), "", note, *likeness, *added, "", *origins(records)])


def _added(record: ScaleRecord, words_bytes: int) -> str:
    """What thresholds and words add to time and size, in a sentence."""
    times = [
        f"{asked.latency.p50_ms - asked.vectors_p50_ms:.1f} ms ({kind})"
        for kind, asked in record.asked.items()
        if asked.vectors_p50_ms is not None
    ]
    share = words_bytes / (sum(record.disk.values()) - words_bytes)
    drawn = f", with words of synthetic documents from `{record.texts}`" if record.texts else ""
    label = f" ({record.label})" if record.label else ""
    return (
        f"At {record.n_chunks:,} chunks of `{record.corpus}`{label}{drawn}, thresholds and words add "
        f"{', '.join(times)} to the p50 of the same queries without them, and "
        f"{100 * share:.1f} % to the size of the index (term counts, postings and reference)."
    )


def _likeness(record: ScaleRecord) -> str:
    """How similar made documents are to real ones, in a sentence for each kind of neighbour."""
    real, grown = record.calibration.real, record.calibration.grown
    return (
        f"Synthetic documents of `{record.source.partition('@')[0]}`: a quarter of {real.n_documents:,} real ones, "
        f"grown fourfold, compared with all {real.n_documents:,}. Cosines at 5, 25, 50, 75 and 95 percent: nearest "
        f"chunk of another document {_listed(grown.nearest_chunk)} (grown) and {_listed(real.nearest_chunk)} (real); "
        f"nearest document {_listed(grown.nearest_document)} and {_listed(real.nearest_document)}; within documents "
        f"{_listed(grown.within)} and {_listed(real.within)}."
    )


def _listed(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def _row(record: ScaleRecord, kind: str) -> list[str]:
    asked, memory, growth = record.asked[kind], record.memory["search"], record.growth
    made = growth.generate_seconds + growth.commit_seconds
    return [
        f"{record.corpus}, {record.label}" if record.label else record.corpus,
        f"{record.n_documents:,}",
        f"{record.n_chunks:,}",
        f"{record.neighbours.nearest_chunk[_MEDIAN]:.2f}",
        record.factory,
        str(record.nprobe or ""),
        f"{asked.n_queries} {kind}, {asked.n_chunks:.0f} chunks",
        f"{asked.latency.p50_ms:.1f} / {asked.latency.p99_ms:.1f}",
        ", ".join(f"{stage} {value:.1f}" for stage, value in asked.stages_ms.items()),
        f"{asked.recall:.3f} at {record.k}",
        f"{record.cold.open_seconds:.1f} + {record.cold.first_seconds:.1f}",
        f"{record.queries_per_second:.1f}",
        f"{memory.peak_anonymous:,.0f}, {memory.peak:,.0f}",
        f"{sum(record.disk.values()) / _MIB:,.0f}",
        f"{made:,.0f} + {growth.publish_seconds:,.0f}",
        f"{record.cap_bytes / _MIB:,.0f}" if record.cap_bytes else "",
        f"{record.gflops:,.0f}",
    ]


def _by_size(records: Sequence[ScaleRecord]) -> list[ScaleRecord]:
    return sorted(records, key=lambda record: (record.source, record.n_chunks, record.cap_bytes or 0, record.label))


def additions_table(records: Sequence[AdditionRecord]) -> str:
    """A row for each index and number of documents added."""
    head = ["Index", "Documents", "Chunks", "Added", "Chunks added", "Committed, s", "First answer, s", "Found"]
    head += ["Generation", "Joined, s", "Full build, s", "Encoding, s", "p50 before / committed / after, ms"]
    head += ["nprobe", "Recall"]
    rows = [_added_row(record) for record in sorted(records, key=lambda record: (record.source, record.n_chunks))]
    note = (
        "First answer: a new process opens the index right after the commit and answers. Found: added documents that "
        "rank first then when searched with themselves; their chunks are scanned until they are in the FAISS index of "
        "the generation. Joined: time to add them to that FAISS index. Encoding: time for the added documents at the "
        "rate of real documents in the same run. p50: of a search with ten hits and their breakdown, without encoding. "
        "nprobe, recall: of the generation, before and after."
    )
    return "\n".join([*markdown(head, rows), "", note, "", *origins(records)])


def _added_row(record: AdditionRecord) -> list[str]:
    stages: tuple[Stage, ...] = (record.before, record.committed, record.after)
    return [
        record.source.partition("@")[0],
        f"{record.n_documents:,}",
        f"{record.n_chunks:,}",
        f"{record.n_added:,}",
        f"{record.n_added_chunks:,}",
        f"{record.commit_seconds:.1f}",
        f"{record.answer_seconds:.2f}",
        f"{record.n_found} of {record.n_asked}",
        f"{record.factory}, {record.outcome}",
        f"{record.join_seconds:.1f}",
        f"{record.build_seconds:.0f}",
        "" if record.encode_seconds is None else f"{record.encode_seconds:,.0f}",
        " / ".join(f"{stage.latency.p50_ms:.1f}" for stage in stages),
        f"{record.before.nprobe or ''} / {record.after.nprobe or ''}".strip(" /"),
        f"{record.before.recall:.3f} / {record.after.recall:.3f}",
    ]
