"""The table of documents added to large indexes; drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import markdown, origins
from benchmarks.scaling.addition_record import AdditionRecord, Stage


def additions_table(records: Sequence[AdditionRecord]) -> str:
    """A row for each index and number of documents added."""
    head = ["Index", "Documents", "Chunks", "Added", "Their chunks", "Committed, s", "First answer, s", "Found"]
    head += ["Generation", "s", "Built from nothing, s", "Encoding them, s", "p50 before / committed / after, ms"]
    head += ["nprobe", "Recall"]
    rows = [_row(record) for record in sorted(records, key=lambda record: (record.source, record.n_chunks))]
    note = (
        "First answer: a new process, right after the commit, opens the index and answers. Found: documents added that "
        "come first when asked with themselves, then; their chunks are scanned until they are in the generation. "
        "Encoding: at the rate of real documents in the same run. nprobe and recall of the generation, before and "
        "after; p50 of a search with ten hits and their breakdown, encoding aside."
    )
    return "\n".join([*markdown(head, rows), "", note, "", *origins(records)])


def _row(record: AdditionRecord) -> list[str]:
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
