"""The table of damaged files."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fuzzing.record import FuzzRecord, Outcome
from benchmarks.markdown import markdown, origins

_NOTE = (
    "Files made from a small seed of each format by one to four of: flipped bits, cut ends, copied, "
    "removed and spliced "
    "blocks, nested marks repeated, numbers made huge, control characters; in half of the archives a member is "
    "damaged and packed again. Each is read in the process that `longmatch index` uses, within "
    "{seconds:g} s of processor "
    "time and {memory:,} MiB. Refused: with a reason of the reader. Failed: with the exception of a "
    "parser as reason. "
    "Hung: no answer in ten times the limit. Lost: no result, or a failure of the process that indexes."
)


def fuzz_table(records: Sequence[FuzzRecord]) -> str:
    """A row for each format, and their sum; the largest run alone."""
    record = max(records, key=lambda one: one.n_files)
    rows = [
        [
            row.format,
            f"{row.n_files:,}",
            *(f"{row.outcomes.get(one, 0):,}" for one in Outcome),
            f"{row.slowest_seconds:.1f}",
        ]
        for row in record.rows
    ]
    sums = [sum(row.outcomes.get(one, 0) for row in record.rows) for one in Outcome]
    slowest = max(row.slowest_seconds for row in record.rows)
    rows.append(["all", f"{record.n_files:,}", *(f"{one:,}" for one in sums), f"{slowest:.1f}"])
    head = ["Format", "Files", *(one.value.capitalize() for one in Outcome), "Slowest, s"]
    note = _NOTE.format(seconds=record.read_seconds, memory=record.read_memory_bytes // 2**20)
    return "\n".join([*markdown(head, rows), "", note, "", *origins([record])])
