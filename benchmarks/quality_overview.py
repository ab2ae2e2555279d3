"""One figure for each system and task, and whether the best is ahead by more than chance; drawn from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.datasets import TASKS
from benchmarks.markdown import markdown, measured
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
    """Systems by tasks, the best in the mean first; only systems and tasks of which no figure is missing.

    Encoders that were trained without a corpus are left aside.
    """
    by_task: dict[str, dict[str, RetrievalRecord]] = {}
    for record in records:
        if not is_without(record):
            by_task.setdefault(record.task, {})[label(record)] = record
    tasks = sorted(by_task, key=lambda task: ([*TASKS, task].index(task), task))
    systems = set.intersection(*(set(of_task) for of_task in by_task.values())) if by_task else set()
    if not systems:
        return ""
    shown = {task: [by_task[task][system] for system in sorted(systems)] for task in tasks}
    columns = {task: dict(zip(sorted(systems), _cells(shown[task]), strict=True)) for task in tasks}
    means = {system: fmean(by_task[task][system].metrics[PRIMARY] for task in tasks) for system in systems}
    order = sorted(systems, key=lambda system: (-means[system], system))
    head = ["System", *(f"{task} ({shown[task][0].n_queries})" for task in tasks)]
    rows = [[system, *(columns[task][system] for task in tasks)] for system in order]
    origin = measured([record for of_task in shown.values() for record in of_task])
    return "\n".join([*markdown(head, rows), "", _NOTE, "", origin])


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
