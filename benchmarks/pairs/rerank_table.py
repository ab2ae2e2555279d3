"""What re-rankers gain over the rankings that they are given, with tests; drawn from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from benchmarks.datasets import TASKS
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.metrics import PRIMARY
from benchmarks.pairs.rerank_record import FirstStage, RerankRecord
from benchmarks.pairs.tables import chosen_texts, course_text
from benchmarks.significance import bootstrap_interval, randomization_p

_MRR = "MRR@10"
_NOTE = (
    f"Before, after: {PRIMARY} with a bootstrap interval over queries, by the first system and with its first targets "
    "in the order of the scorer. At best: the same targets in the order of their relevance. p: two-sided paired "
    f"randomisation test of {PRIMARY} after against before, adjusted after Holm over the rows of a task. Scorers "
    "learned from pairs of train, and their weights were chosen by pairs of valid; no query of test stands in either. "
    "Steps: updates made, those of pretraining before the +, and in brackets the one whose weights were kept."
)


def rerank_table(records: Sequence[RerankRecord]) -> str:
    """A row for each scorer and first system, by task; "" without records."""
    shown = sorted(records, key=lambda one: (*_place(one), one.first.system, -fmean(one.after[PRIMARY])))
    head = ["Task (queries)", "First", "Re-ranked by", "Before", "After [95 %]", "At best"]
    head += [f"{_MRR} before", "after", "s a query", "Steps", "p"]
    rows = [[*_row(record), p] for record, p in zip(shown, _p_values(shown), strict=True)]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(shown)]) if shown else ""


def _place(record: RerankRecord) -> tuple[int, str, str]:
    return [*TASKS, record.task].index(record.task), record.task, record.split


def _row(record: RerankRecord) -> list[str]:
    low, high = bootstrap_interval(record.after[PRIMARY], seed=record.origin.seed)
    split = "" if record.split == "test" else f", {record.split}"
    return [
        f"{record.task}{split} ({len(record.query_ids)})",
        f"{_with_encoder(record.first)}, {record.depth}",
        _label(record),
        f"{fmean(record.before[PRIMARY]):.3f}",
        f"{fmean(record.after[PRIMARY]):.3f} [{low:.3f}, {high:.3f}]",
        f"{fmean(record.at_best[PRIMARY]):.3f}",
        f"{fmean(record.before[_MRR]):.3f}",
        f"{fmean(record.after[_MRR]):.3f}",
        f"{record.seconds_per_query:.2f}",
        course_text(record.course) if record.course else "",
    ]


def _with_encoder(first: FirstStage) -> str:
    return ", ".join(part for part in (first.system, first.encoder.partition("@")[0]) if part)


def _label(record: RerankRecord) -> str:
    encoder = [record.encoder.partition("@")[0]] if record.encoder else []
    return ", ".join([record.scorer, *encoder, *chosen_texts(record.chosen), f"pairs {record.protocol}"])


def _p_values(records: Sequence[RerankRecord]) -> list[str]:
    """Adjusted over the records of the same queries."""
    families: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        families[record.dataset, record.split].append(at)
    cells = [""] * len(records)
    for family in families.values():
        tested = [records[at] for at in family]
        p_values = [randomization_p(one.after[PRIMARY], one.before[PRIMARY], seed=one.origin.seed) for one in tested]
        for at, cell in zip(family, p_cells(p_values), strict=True):
            cells[at] = cell
    return cells
