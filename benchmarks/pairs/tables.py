"""How well pairs are told apart, scorers beside each other under one budget, with tests; drawn from records alone."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.pairs.judging import is_correct
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.scorer import LABELS_ALONE, SMALL, Budget, Course
from benchmarks.pairs.splitting import Split, SplitRule
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import Settings

AGAINST = "bm25"
CONSTANT = "always a match"
_NOTE = (
    "P, R and F1 are of the matches. The threshold is that of best accuracy on valid, in the column before the steps "
    "that of best F1 on valid. [95 %]: bootstrap over the first documents of pairs, each with all its pairs. p: "
    "two-sided paired randomisation test of accuracy against {against}, in which all pairs of a first document are "
    "swapped together, adjusted after Holm over the scorers of a table. Several seeds: mean ± standard deviation, "
    "tests and intervals over the mean of each pair. Steps: updates made, those of pretraining before the +, and in "
    "brackets the one whose weights were the best on valid. bm25, tfidf, doc2vec, wmd, wrd and hidden_topics read the "
    "texts of all documents, those of test too, and no label; all others learn from documents of train alone."
)
_BATCH_NOTE = "* takes pairs of a batch that have no label for mismatches too"
_SHARED_NOTE = "; by this split some of them are matches of valid and test"


@dataclass(frozen=True)
class _Row:
    """A scorer: its records, one a seed, all of the same pairs."""

    records: Sequence[MatchingRecord]

    @property
    def correct(self) -> NDArray[np.float64]:
        """(N,) the share of seeds by which a pair of test is called right."""
        called = [is_correct(one.scores, one.labels, one.at_accuracy.threshold) for one in self.records]
        share: NDArray[np.float64] = np.mean(np.array(called, np.float64), axis=0)
        return share

    def mean(self, of: Callable[[MatchingRecord], float]) -> str:
        """Of one figure, with the standard deviation where there are several seeds."""
        values = [of(record) for record in self.records]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.3f}{spread}"


def matching_table(records: Sequence[MatchingRecord], against: str = AGAINST) -> str:
    """A table for each set of pairs and each budget, the most accurate scorer first, its commands below it.

    A scorer that learns nothing from pairs stands in the tables of all budgets; records of one
    that differ in their seed alone are one row.

    Args:
        records: of any tasks.
        against: the scorer that all others of a table are tested against.
    """
    asked: dict[tuple[object, ...], list[MatchingRecord]] = defaultdict(list)
    for one in records:
        asked[one.dataset, one.protocol, one.split_rule, one.pairs, one.is_quick].append(one)
    tables = [
        _table([one for one in of_pairs if one.budget in (None, budget)], budget, against)
        for _, of_pairs in sorted(asked.items(), key=lambda item: str(item[0]))
        for budget in _budgets(of_pairs)
    ]
    return "\n".join([*tables, _NOTE.format(against=against)]) if tables else ""


def _budgets(records: Iterable[MatchingRecord]) -> list[Budget | None]:
    found = {record.budget for record in records if record.budget is not None}
    return [*sorted(found, key=lambda budget: (budget.steps, budget.pairs_per_step, budget.seconds))] or [None]


def _table(records: Sequence[MatchingRecord], budget: Budget | None, against: str) -> str:
    of_scorer: dict[tuple[str, ...], list[MatchingRecord]] = defaultdict(list)
    for record in records:
        of_scorer[record.scorer, record.encoder, str(sorted(record.chosen.items()))].append(record)
    rows = sorted(map(_Row, of_scorer.values()), key=lambda row: -float(row.correct.mean()))
    rival = next((row for row in rows if row.records[0].scorer == against), None)
    p_values = p_cells([_p(row, rival) for row in rows])
    head = ["Scorer", "Accuracy [95 %]", "P", "R", "F1", "AUC", "F1 at best F1", "Steps", f"p, {against}"]
    lines = [[_label(row), *_quality(row), _steps(row), p] for row, p in zip(rows, p_values, strict=True)]
    first = records[0]
    table = markdown(head, [*lines, _constant(first)])
    return "\n".join([_caption(first, budget), "", *table, "", *_batch_note(records), *origins(records), ""])


def _caption(record: MatchingRecord, budget: Budget | None) -> str:
    shared = {
        SplitRule.DOCUMENT: "no document in two splits",
        SplitRule.PAIR: "split over pairs, documents shared",
        SplitRule.GIVEN: "splits as given",
    }[SplitRule(record.split_rule)]
    counts = ", ".join(
        f"{split} {record.n_pairs[split]:,} of {record.n_documents[split]:,} documents{_lost(record, split)}"
        for split in reversed(Split)
    )
    told = f"{budget.steps:,} steps of {budget.pairs_per_step} pairs, {budget.seconds:,.0f} s" if budget else "none"
    quick = " A quick run: its figures mean nothing." if record.is_quick else ""
    return f"**{record.task}**, protocol {record.protocol}, {shared}; pairs: {counts}. Budget: {told}.{quick}"


def _lost(record: MatchingRecord, split: Split) -> str:
    return f" ({record.n_lost[split]:,} went)" if record.n_lost[split] else ""


def _label(row: _Row) -> str:
    """Scorer, encoder, and what was chosen otherwise than by default."""
    record = row.records[0]
    seeds = sorted(one.origin.seed for one in row.records)
    told = [f"seeds {', '.join(map(str, seeds))}"] if len(seeds) > 1 else [f"seed {seeds[0]}"] if seeds[0] else []
    encoder = [record.encoder.partition("@")[0]] if record.encoder else []
    return ", ".join([record.scorer + "*" * _takes_unlabelled(record), *encoder, *chosen_texts(record.chosen), *told])


def _quality(row: _Row) -> list[str]:
    record = row.records[0]
    low, high = bootstrap_interval(row.correct, groups=record.groups, seed=record.origin.seed)
    return [
        f"{row.mean(lambda one: one.at_accuracy.accuracy)} [{low:.3f}, {high:.3f}]",
        row.mean(lambda one: one.at_accuracy.precision),
        row.mean(lambda one: one.at_accuracy.recall),
        row.mean(lambda one: one.at_accuracy.f1),
        row.mean(lambda one: one.at_accuracy.auc),
        row.mean(lambda one: one.at_f1.f1),
    ]


def _steps(row: _Row) -> str:
    courses = [record.course for record in row.records if record.course is not None]
    return "; ".join(dict.fromkeys(map(course_text, courses)))


def chosen_texts(chosen: Settings) -> list[str]:
    """What was chosen otherwise than by default; sizes of a small scorer are not told one by one."""
    return ["small"] if chosen.get(SMALL) else [f"{name} {value}" for name, value in chosen.items()]


def course_text(course: Course) -> str:
    """Steps made, those of pretraining before the +, and in brackets the one whose weights were kept."""
    pretraining = f"{course.pretraining_steps:,} + " if course.pretraining_steps else ""
    return f"{pretraining}{course.n_steps:,} ({course.best_step:,})"


def _constant(record: MatchingRecord) -> list[str]:
    """What one gets who calls every pair a match: accuracy and precision are the share of matches."""
    share = float(np.mean(record.labels))
    f1 = 2 * share / (1 + share)
    return [CONSTANT, *(f"{value:.3f}" for value in (share, share, 1.0, f1, 0.5, f1)), "", ""]


def _p(row: _Row, rival: _Row | None) -> float | None:
    if rival is None or row is rival:
        return None
    record = row.records[0]
    return randomization_p(row.correct, rival.correct, groups=record.groups, seed=record.origin.seed)


def _batch_note(records: Sequence[MatchingRecord]) -> list[str]:
    if not any(map(_takes_unlabelled, records)):
        return []
    shares = records[0].split_rule != SplitRule.DOCUMENT
    return [f"{_BATCH_NOTE}{_SHARED_NOTE * shares}.", ""]


def _takes_unlabelled(record: MatchingRecord) -> bool:
    return record.settings.get(LABELS_ALONE) is False
