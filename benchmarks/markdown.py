"""Tables in Markdown: their lines, their p-values, and the lines below that say how and where they were measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchmarks.significance import holm
from indexer.training.origin import Origin


class Measured(Protocol):
    """Any record."""

    @property
    def origin(self) -> Origin:
        """Where it comes from."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def p_cells(p_values: Sequence[float | None]) -> list[str]:
    """One family of tests as cells: p-values adjusted by `holm` over those that there are, "" for None."""
    adjusted = iter(holm([p for p in p_values if p is not None]))
    return ["" if p is None else _p_text(next(adjusted)) for p in p_values]


def origins(records: Sequence[Measured]) -> list[str]:
    """The lines below a table: the commands that run it again, then commits and machines; none without records."""
    if not records:
        return []
    commands = [f"- `{command}`" for command in dict.fromkeys(record.origin.command for record in records)]
    return ["Run again:", "", *commands, "", measured(records)]


def measured(records: Sequence[Measured]) -> str:
    """The line that names machines, each with its commits."""
    commits: dict[str, list[str]] = {}
    for record in records:
        commits.setdefault(_machine(record.origin), []).append(_commit(record.origin))
    told = [f"{_counted(list(dict.fromkeys(of_one)))} on {machine}" for machine, of_one in commits.items()]
    return f"Measured: {'; '.join(told)}."


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _counted(commits: Sequence[str]) -> str:
    return f"commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}"


def _commit(origin: Origin) -> str:
    return (origin.commit[:10] or "unknown") + (" with changes" if origin.is_dirty else "")


def _machine(origin: Origin) -> str:
    machine = origin.machine
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"
