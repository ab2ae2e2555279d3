"""Tables of pair classification: scorers under one budget, with significance tests; computed from runs only."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.pair_judging import is_correct, judge
from benchmarks.pair_scorer import LABELS_ALONE, SMALL, Budget, Course
from benchmarks.pairs.splitting import Split, SplitRule
from benchmarks.runs import Run
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import Settings

AGAINST = "bm25"
CONSTANT = "always a match"
_NOTE = (
    "P, R and F1 are of the class of matches. The threshold has the best accuracy on valid; in the column F1 at best "
    "F1 it has the best F1 on valid. [95 %]: bootstrap over the first documents of pairs, each with all its pairs. p: "
    "two-sided paired randomisation test of accuracy against {against}, in which all pairs of a first document are "
    "swapped together, adjusted by Holm's method over the scorers of a table. Several seeds: mean ± standard "
    "deviation; tests and intervals use the mean of each pair. Steps: updates, with those of pretraining before the "
    "+; in parentheses the step whose parameters were the best on valid. bm25, tfidf, doc2vec, wmd, wrd and "
    "hidden_topics read the texts of all documents, including those of test, and no labels; all other scorers learn "
    "from documents of train alone."
)
_BATCH_NOTE = "* also uses unlabelled pairs of a batch as mismatches"
_SHARED_NOTE = "; with this split some of them are matches of valid and test"


@dataclass(frozen=True)
class GivenBudget(Budget):
    """The budget of a run. Older runs also had a time limit, and therefore cannot be repeated."""

    seconds: float = 0.0  # limit of training; 0 for no limit

    @classmethod
    def of(cls, budget: Budget) -> GivenBudget:
        """A budget without a time limit."""
        return cls(budget.steps, budget.pairs_per_step)

    def __str__(self) -> str:
        limit = f", cut off at {self.seconds:,.0f} s" if self.seconds else ""
        return f"{self.steps:,} steps of {self.pairs_per_step} pairs{limit}"


@dataclass(frozen=True)
class PairsDetails:
    """The details of a run of pairs, besides its cases; a case has a `score`, and whether the pair is a `match`."""

    protocol: str  # how pairs were drawn
    split_rule: str  # what splits share
    pairs: str  # checksum of all pairs in order; runs with equal checksums are compared pair by pair
    n_pairs: dict[str, int]  # by split
    n_documents: dict[str, int]  # by split, in its pairs
    n_lost: dict[str, int]  # by split: dropped pairs, without a mismatch or a text
    chosen: Settings  # settings that differ from the scorer's defaults
    budget: GivenBudget | None  # None if the scorer does not learn from pairs
    course: Course | None  # of learning; None if the scorer does not learn from pairs
    accuracy_threshold: float  # of best accuracy on valid
    f1_threshold: float  # of best F1 on valid


class _Scored:
    """A run with the values for its table."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.details = run.details_as(PairsDetails)
        scores, labels = run.values("score"), [bool(value) for value in run.values("match")]
        self.labels = labels
        self.correct = is_correct(scores, labels, self.details.accuracy_threshold)
        self.at_accuracy = judge(scores, labels, self.details.accuracy_threshold)
        self.at_f1 = judge(scores, labels, self.details.f1_threshold)


@dataclass(frozen=True)
class _Row:
    """A scorer with its runs, one for each seed, over the same pairs."""

    runs: Sequence[_Scored]

    @property
    def correct(self) -> NDArray[np.float64]:
        """(N,) the share of seeds with which a pair of test is classified correctly."""
        share: NDArray[np.float64] = np.mean(np.array([one.correct for one in self.runs], np.float64), axis=0)
        return share

    def mean(self, of: Callable[[_Scored], float]) -> str:
        """The mean of a value over seeds, with the standard deviation if there are several."""
        values = [of(run) for run in self.runs]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.3f}{spread}"


def pairs_table(runs: Sequence[Run], against: str = AGAINST) -> str:
    """A table for each set of pairs and each budget, the most accurate scorer first, its commands below.

    A scorer that does not learn from pairs is in the tables of all budgets; runs of a scorer that differ only in
    their seed are one row.
    """
    asked: dict[tuple[str, ...], list[_Scored]] = defaultdict(list)
    for one in map(_Scored, runs):
        asked[one.run.dataset, one.details.protocol, one.details.split_rule, one.details.pairs].append(one)
    tables = [
        _table([one for one in of_pairs if one.details.budget in (None, budget)], budget, against)
        for _, of_pairs in sorted(asked.items())
        for budget in _budgets(of_pairs)
    ]
    return "\n".join([*tables, _NOTE.format(against=against)]) if tables else ""


def _budgets(runs: Iterable[_Scored]) -> list[GivenBudget | None]:
    found = {run.details.budget for run in runs if run.details.budget is not None}
    return [*sorted(found, key=lambda budget: (budget.steps, budget.pairs_per_step, budget.seconds))] or [None]


def _table(runs: Sequence[_Scored], budget: GivenBudget | None, against: str) -> str:
    of_scorer: dict[tuple[str, ...], list[_Scored]] = defaultdict(list)
    for one in runs:
        of_scorer[one.run.system, one.run.encoder, str(sorted(one.details.chosen.items()))].append(one)
    rows = sorted(map(_Row, of_scorer.values()), key=lambda row: -float(row.correct.mean()))
    rival = next((row for row in rows if row.runs[0].run.system == against), None)
    p_values = p_cells([_p(row, rival) for row in rows])
    head = ["Scorer", "Accuracy [95 %]", "P", "R", "F1", "AUC", "F1 at best F1", "Steps", f"p, {against}"]
    lines = [[_label(row), *_quality(row), _steps(row), p] for row, p in zip(rows, p_values, strict=True)]
    first = runs[0]
    table = markdown(head, [*lines, _constant(first)])
    return "\n".join(
        [_caption(first, budget), "", *table, "", *_batch_note(runs), *origins([one.run for one in runs]), ""]
    )


def _caption(one: _Scored, budget: GivenBudget | None) -> str:
    shared = {
        SplitRule.DOCUMENT: "no document in two splits",
        SplitRule.PAIR: "split over pairs, documents shared",
    }[SplitRule(one.details.split_rule)]
    counts = ", ".join(
        f"{split} {one.details.n_pairs[split]:,} of {one.details.n_documents[split]:,} documents{_lost(one, split)}"
        for split in reversed(Split)
    )
    given = str(budget) if budget else "none"
    return f"**{one.run.corpus}**, protocol {one.details.protocol}, {shared}; pairs: {counts}. Budget: {given}."


def _lost(one: _Scored, split: Split) -> str:
    return f" ({one.details.n_lost[split]:,} dropped)" if one.details.n_lost[split] else ""


def _label(row: _Row) -> str:
    """Scorer, encoder, and the settings that differ from the defaults."""
    first = row.runs[0]
    seeds = sorted(one.run.origin.seed for one in row.runs)
    of = [f"seeds {', '.join(map(str, seeds))}"] if len(seeds) > 1 else [f"seed {seeds[0]}"] if seeds[0] else []
    encoder = [first.run.encoder_name] if first.run.encoder else []
    name = first.run.system + "*" * _takes_unlabelled(first)
    return ", ".join([name, *encoder, *_chunk(first), *chosen_texts(first.details.chosen), *of])


def _chunk(one: _Scored) -> list[str]:
    """The length of a chunk of CoLDE, which is our choice."""
    tokens = one.run.settings.get("size_chunk_tokens")
    return [f"chunks of {tokens} tokens"] if tokens else []


def _quality(row: _Row) -> list[str]:
    run = row.runs[0].run
    low, high = bootstrap_interval(row.correct, groups=run.groups, seed=run.origin.seed)
    return [
        f"{row.mean(lambda one: one.at_accuracy.accuracy)} [{low:.3f}, {high:.3f}]",
        row.mean(lambda one: one.at_accuracy.precision),
        row.mean(lambda one: one.at_accuracy.recall),
        row.mean(lambda one: one.at_accuracy.f1),
        row.mean(lambda one: one.at_accuracy.auc),
        row.mean(lambda one: one.at_f1.f1),
    ]


def _steps(row: _Row) -> str:
    courses = [one.details.course for one in row.runs if one.details.course is not None]
    return "; ".join(dict.fromkeys(map(course_text, courses)))


def chosen_texts(chosen: Settings) -> list[str]:
    """The settings that differ from the defaults; the sizes of a small scorer are not listed one by one."""
    return ["small"] if chosen.get(SMALL) else [f"{name} {value}" for name, value in chosen.items()]


def course_text(course: Course) -> str:
    """Steps, with those of pretraining before the +, and in brackets the step whose parameters were kept."""
    pretraining = f"{course.pretraining_steps:,} + " if course.pretraining_steps else ""
    return f"{pretraining}{course.n_steps:,} ({course.best_step:,})"


def _constant(one: _Scored) -> list[str]:
    """The row for classifying every pair as a match: accuracy and precision are the share of matches."""
    share = float(np.mean(one.labels))
    f1 = 2 * share / (1 + share)
    return [CONSTANT, *(f"{value:.3f}" for value in (share, share, 1.0, f1, 0.5, f1)), "", ""]


def _p(row: _Row, rival: _Row | None) -> float | None:
    if rival is None or row is rival:
        return None
    run = row.runs[0].run
    return randomization_p(row.correct, rival.correct, groups=run.groups, seed=run.origin.seed)


def _batch_note(runs: Sequence[_Scored]) -> list[str]:
    if not any(map(_takes_unlabelled, runs)):
        return []
    shares = runs[0].details.split_rule != SplitRule.DOCUMENT
    return [f"{_BATCH_NOTE}{_SHARED_NOTE * shares}.", ""]


def _takes_unlabelled(one: _Scored) -> bool:
    return one.run.settings.get(LABELS_ALONE) is False
