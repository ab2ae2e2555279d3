"""Tables in Markdown, and the line below them that says where they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import Record
from engine.origin import Origin


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def origins(records: Sequence[Record]) -> list[str]:
    """One line: the commits and machines of records; none where there are no records."""
    return [f"Measured: {'; '.join(dict.fromkeys(_origin(record.origin) for record in records))}."] if records else []


def _origin(origin: Origin) -> str:
    machine = origin.machine
    commit = f"commit {origin.commit[:10] or 'unknown'}" + (" with changes" if origin.is_dirty else "")
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{commit} on {machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"
