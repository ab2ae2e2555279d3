"""The table of plans and what became of them; drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.budgets.record import PlanRecord
from benchmarks.markdown import markdown, origins


def plan_table(records: Sequence[PlanRecord]) -> str:
    """A row for each corpus and budget: medians, and in brackets the least and the most of taken to planned."""
    head = ["Corpus", "Documents", "Tokens", "Budget, MB", "FAISS index", "Rounds", "Time planned / taken, s", "Ratio"]
    head += ["Memory planned / taken, MB", "Ratio", "Disk planned / taken, MB", "Ratio", "Planning, s"]
    rows = [_row(record) for record in sorted(records, key=lambda record: (record.dataset, record.n_documents))]
    note = (
        "Medians over rounds, each of which plans and then indexes, by the command line, in processes of their own. "
        "Ratio: taken to planned, the median, and the least and the most of a round. Memory: the process's own at its "
        "most. Disk: the index afterwards."
    )
    return "\n".join([*markdown(head, rows), "", note, "", *origins(records)])


def _row(record: PlanRecord) -> list[str]:
    rounds = record.rounds
    return [
        record.dataset.partition("@")[0],
        f"{record.n_documents:,}",
        f"{record.n_tokens:,}",
        f"{record.memory_bytes / 1e6:,.0f}" if record.memory_bytes else "",
        record.factory or "none",
        str(len(rounds)),
        *_pair([one.planned_seconds for one in rounds], [one.seconds for one in rounds], 1.0),
        *_pair([one.planned_bytes for one in rounds], [one.peak_bytes for one in rounds], 1e6),
        *_pair([one.planned_disk_bytes for one in rounds], [one.disk_bytes for one in rounds], 1e6),
        f"{median(one.plan_seconds for one in rounds):.1f}",
    ]


def _pair(planned: Sequence[float], taken: Sequence[float], unit: float) -> tuple[str, str]:
    ratios = [came / foreseen for foreseen, came in zip(planned, taken, strict=True)]
    return (
        f"{median(planned) / unit:,.1f} / {median(taken) / unit:,.1f}",
        f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
    )
