"""The table of first tries."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import markdown, origins
from benchmarks.newcomers.record import FirstMinutesRecord, Outcome

_NOTE = (
    "Each try is run as a person would type it, in a process of its own, against an index of a few documents. "
    "Clear error: an error of this program, which names the next step. Seconds: processor time from the start of "
    "Python, loading the encoder included where it is needed."
)


def first_minutes_table(records: Sequence[FirstMinutesRecord]) -> str:
    """A row for each try."""
    commits = {record.before_commit[:10] for record in records if record.before_commit}
    before = f"Before ({', '.join(sorted(commits))})" if commits else "Before"
    rows = [
        [row.name, *_cells(row.before), *_cells(row.after), str(row.after.n_lines)]
        for record in records
        for row in record.rows
    ]
    head = ["First try", before, "Seconds", "After", "Seconds", "Lines typed"]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


def _cells(outcome: Outcome | None) -> list[str]:
    return ["", ""] if outcome is None else [outcome.kind, f"{outcome.seconds:.1f}"]
