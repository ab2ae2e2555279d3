"""The tables of GPU records, drawn from them alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gpus.record import EndToEnd, GpuRecord, Searched
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.latency import Percentiles


def gpu_table(records: Sequence[GpuRecord]) -> str:
    """What was measured: the machine, encoding, search, an index from end to end, and what failed."""
    parts = [
        _machines(records),
        _encoding(records),
        _searching(records),
        _whole(records),
        [f"{record.name}, {stage}: {reason}" for record in records for stage, reason in record.failed.items()],
        origins(records),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _machines(records: Sequence[GpuRecord]) -> list[str]:
    head = ["Device", "Memory, GiB", "Peak bf16 / fp16 / fp32, TFLOP/s", "Encoder"]
    rows = [
        [
            record.gpu or record.device,
            f"{record.gpu_memory_bytes / 2**30:,.0f}" if record.gpu_memory_bytes else "",
            f"{peak.bfloat16:,.1f} / {peak.float16:,.1f} / {peak.float32:,.1f}" if (peak := record.peak) else "",
            record.encoder,
        ]
        for record in records
    ]
    return markdown(head, rows)


def _encoding(records: Sequence[GpuRecord]) -> list[str]:
    head = ["Device", "Sequences", "System", "Token budget", "Tokens/s", "Share of peak"]
    rows = [
        [
            record.gpu or record.device,
            f"{point.n_sequences:,} of {point.what}",
            point.system,
            "" if point.token_budget is None else f"{point.token_budget:,}",
            f"{point.tokens_per_second:,.0f}",
            "" if point.share_of_peak is None else f"{point.share_of_peak:.1%}",
        ]
        for record in records
        for point in record.encoded
    ]
    return markdown(head, rows) if rows else []


def _searching(records: Sequence[GpuRecord]) -> list[str]:
    head = ["Device", "Vectors", "Replica", "nprobe", "Query chunks", "p50 / p99, ms", "Chunk recall"]
    head += ["Equal to CPU", "GiB", "Filled, s"]
    rows = [row for record in records for searched in record.searched for row in _searched(record, searched)]
    return markdown(head, rows) if rows else []


def _searched(record: GpuRecord, searched: Searched) -> list[list[str]]:
    return [
        [
            record.gpu or record.device,
            f"{searched.n_vectors:,} x {searched.width}",
            searched.factory,
            str(point.nprobe or ""),
            str(searched.query_chunks),
            _times(point.latency),
            f"{point.recall:.4f} at {searched.k}",
            "" if searched.equal_to_cpu is None else f"{searched.equal_to_cpu:.2%}",
            f"{searched.size_bytes / 2**30:.2f}" if searched.size_bytes else "",
            f"{searched.fill_seconds:,.1f}",
        ]
        for point in searched.points
    ]


def _whole(records: Sequence[GpuRecord]) -> list[str]:
    head = ["Device", "Documents", "Chunks", "Indexed, s", "Opened, s", "GPU p50 / p99, ms", "CPU", "CPU, exact"]
    head += ["Hits of the exact scan", "Scores within"]
    rows = [_end_to_end(record, record.end_to_end) for record in records if record.end_to_end]
    told = [record.end_to_end.told for record in records if record.end_to_end]
    return [*markdown(head, rows), "", *told] if rows else []


def _end_to_end(record: GpuRecord, measured: EndToEnd) -> list[str]:
    return [
        record.gpu or record.device,
        f"{measured.n_documents:,}",
        f"{measured.n_chunks:,}",
        f"{measured.index_seconds:,.1f}",
        f"{measured.open_seconds:,.1f}",
        _times(measured.gpu),
        _times(measured.cpu),
        _times(measured.cpu_exact),
        f"{measured.equal_hits:.1%} of {measured.n_queries} queries",
        f"{measured.score_error:.0e}",
    ]


def _times(latency: Percentiles) -> str:
    return f"{latency.p50_ms:.2f} / {latency.p99_ms:.2f}"
