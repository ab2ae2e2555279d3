"""One figure for each system and task, and whether the best is ahead by more than chance; drawn from records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from benchmarks.datasets import TASKS
from benchmarks.markdown import markdown, measured, origins
from benchmarks.metrics import PRIMARY
from benchmarks.quality_tables import is_without, label
from benchmarks.records import RetrievalRecord
from benchmarks.significance import holm, randomization_p

_LEVEL = 0.05
_LEVEL_MARK = "="
_NOTE = (
    f"{PRIMARY}, the best of each task in bold; {_LEVEL_MARK} marks what it is not ahead of by more than chance "
    f"(two-sided paired randomisation test, p at least {_LEVEL} after Holm over the systems of a task)."
)


def overview_table(records: Sequence[RetrievalRecord]) -> str:
    """Systems by tasks, the one that is nearest to the best of each task in the mean first.

    A system that misses more than a quarter of the tasks is left out; "-" marks a figure that was not
    measured. Encoders that were trained without a corpus are left aside.
    """
    by_task: dict[str, dict[str, RetrievalRecord]] = {}
    for record in records:
        if not is_without(record):
            by_task.setdefault(record.task, {})[label(record)] = record
    tasks = sorted(by_task, key=lambda task: ([*TASKS, task].index(task), task))
    counts = Counter(system for of_task in by_task.values() for system in of_task)
    systems = sorted(system for system, count in counts.items() if count >= len(tasks) - len(tasks) // 4)
    shown = {task: [by_task[task][system] for system in systems if system in by_task[task]] for task in tasks}
    if not all(shown.values()) or not systems:
        return ""
    columns = {task: dict(zip(map(label, shown[task]), _cells(shown[task]), strict=True)) for task in tasks}
    best = {task: max(record.metrics[PRIMARY] for record in shown[task]) for task in tasks}
    behind = {
        system: fmean(best[task] - by_task[task][system].metrics[PRIMARY] for task in tasks if system in by_task[task])
        for system in systems
    }
    order = sorted(systems, key=lambda system: (behind[system], system))
    head = ["System", *(f"{task} ({shown[task][0].n_queries})" for task in tasks)]
    rows = [[system, *(columns[task].get(system, "-") for task in tasks)] for system in order]
    origin = measured([record for of_task in shown.values() for record in of_task])
    return "\n".join([*markdown(head, rows), "", _NOTE, "", origin])


def parts_table(records: Sequence[RetrievalRecord]) -> str:
    """The same of searches with a part of each document."""
    named = [replace(record, task=f"{record.task}, {record.part}") for record in records]
    table, _, _ = overview_table(named).rpartition("\n\n")  # without its own line of machines
    return "\n".join([table, "", *origins(records)]) if table else ""


def _cells(records: Sequence[RetrievalRecord]) -> list[str]:
    """Of one task."""
    best = max(records, key=lambda record: record.metrics[PRIMARY])
    others = [record for record in records if record is not best]
    adjusted = holm(
        [
            randomization_p(best.per_query[PRIMARY], other.per_query[PRIMARY], seed=best.origin.seed)
            if other.query_ids == best.query_ids
            else 1.0
            for other in others
        ]
    )
    marks = {id(other): f" {_LEVEL_MARK}" if p >= _LEVEL else "" for other, p in zip(others, adjusted, strict=True)}
    return [
        f"**{record.metrics[PRIMARY]:.3f}**" if record is best else f"{record.metrics[PRIMARY]:.3f}{marks[id(record)]}"
        for record in records
    ]
