"""Tables of pair classification: scorers under one budget, with significance tests."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.pairs.scoring import LABELS_ALONE, Budget, Course, Judgment, is_correct, judge
from benchmarks.runs import Run
from benchmarks.significance import randomization_p
from benchmarks.systems import Settings
from benchmarks.tables.pivot import Cell, grouped, interval, origins, p_cells, pivot

AGAINST = "bm25"
CONSTANT = "always a match"
_NOTE = (
    "P, R and F1 are of the class of matches. The threshold has the best accuracy on valid; in the column F1 at best "
    "F1 it has the best F1 on valid. [95 %]: bootstrap over the first documents of pairs, each with all its pairs. p: "
    "two-sided paired randomisation test of accuracy against bm25, in which all pairs of a first document are "
    "swapped together, adjusted by Holm's method over the scorers of a table. Several seeds: mean ± standard "
    "deviation; tests and intervals use the mean of each pair. Steps: updates, with those of pretraining before the "
    "+; in parentheses the step whose parameters were the best on valid. bm25, tfidf, doc2vec, wmd, wrd and "
    "hidden_topics read the texts of all documents, including those of test, and no labels; all other scorers learn "
    "from documents of train alone."
)
_BATCH_NOTE = "* also uses unlabelled pairs of a batch as mismatches."


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
    budget: Budget | None  # None if the scorer does not learn from pairs
    course: Course | None  # of learning; None if the scorer does not learn from pairs
    accuracy_threshold: float  # of best accuracy on valid
    f1_threshold: float  # of best F1 on valid


class Scored:
    """A run with the values for its table."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.details = run.details_as(PairsDetails)
        self.labels = [bool(value) for value in run.values("match")]

    @cached_property
    def correct(self) -> list[float]:
        """1 where a pair of test is classified correctly."""
        correct = is_correct(self.run.values("score"), self.labels, self.details.accuracy_threshold)
        return [float(value) for value in correct]

    @cached_property
    def at_accuracy(self) -> Judgment:
        """At the threshold of best accuracy on valid."""
        return judge(self.run.values("score"), self.labels, self.details.accuracy_threshold)

    @cached_property
    def at_f1(self) -> Judgment:
        """At the threshold of best F1 on valid."""
        return judge(self.run.values("score"), self.labels, self.details.f1_threshold)


@dataclass(frozen=True)
class _Row:
    """A scorer with its runs, one for each seed, over the same pairs."""

    runs: Sequence[Scored]

    @cached_property
    def correct(self) -> list[float]:
        """The share of seeds with which a pair of test is classified correctly."""
        return [statistics.fmean(values) for values in zip(*(scored.correct for scored in self.runs), strict=True)]

    def mean(self, of: Callable[[Scored], float]) -> str:
        """The mean of a value over seeds, with the standard deviation if there are several."""
        values = [of(run) for run in self.runs]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        return f"{statistics.mean(values):.3f}{spread}"

    @property
    def label(self) -> str:
        """Scorer, encoder, and the settings that differ from the defaults."""
        run, chosen = self.runs[0].run, self.runs[0].details.chosen
        seeds = sorted(scored.run.origin.seed for scored in self.runs)
        of = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}" if seeds[0] else ""
        # The length of a chunk of CoLDE is our choice.
        chunk = f"chunks of {run.settings['size_chunk_tokens']} tokens" if "size_chunk_tokens" in run.settings else ""
        name = run.system + "*" * _takes_unlabelled(self.runs[0])
        settings = (f"{name} {value}" for name, value in chosen.items())
        return ", ".join(filter(None, [name, run.encoder_name, chunk, *settings, of]))

    @property
    def accuracy(self) -> str:
        """The accuracy, with the interval of its mean over seeds."""
        run = self.runs[0].run
        _, _, ends = interval(self.correct, groups=run.groups, seed=run.origin.seed).partition(" ")
        return f"{self.mean(lambda scored: scored.at_accuracy.accuracy)} {ends}"

    @property
    def steps(self) -> str:
        """Steps, with those of pretraining before the +, and in brackets the step whose parameters were kept."""
        courses = [scored.details.course for scored in self.runs if scored.details.course is not None]
        return "; ".join(
            dict.fromkeys(
                f"{f'{course.pretraining_steps:,} + ' if course.pretraining_steps else ''}{course.n_steps:,} "
                f"({course.best_step:,})"
                for course in courses
            )
        )

    def p(self, rival: _Row | None) -> float | None:
        """The p-value of the difference in accuracy; None without a rival."""
        if rival is None or self is rival:
            return None
        run = self.runs[0].run
        return randomization_p(self.correct, rival.correct, groups=run.groups, seed=run.origin.seed)


_COLUMNS: dict[str, Cell[_Row]] = {
    "Scorer": lambda row: row.label,
    "Accuracy [95 %]": lambda row: row.accuracy,
    "P": lambda row: row.mean(lambda scored: scored.at_accuracy.precision),
    "R": lambda row: row.mean(lambda scored: scored.at_accuracy.recall),
    "F1": lambda row: row.mean(lambda scored: scored.at_accuracy.f1),
    "AUC": lambda row: row.mean(lambda scored: scored.at_accuracy.auc),
    "F1 at best F1": lambda row: row.mean(lambda scored: scored.at_f1.f1),
    "Steps": lambda row: row.steps,
}


def pairs_table(runs: Sequence[Run]) -> str:
    """A table for each set of pairs and each budget, the most accurate scorer first, its commands below.

    A scorer that does not learn from pairs is in the tables of all budgets; runs of a scorer that differ only in
    their seed are one row.
    """
    sets = grouped(map(Scored, runs), lambda one: (one.run.dataset, one.details.protocol, one.details.pairs))
    tables = [
        _table([one for one in of_pairs if one.details.budget in (None, budget)], budget)
        for _, of_pairs in sorted(sets.items())
        for budget in _budgets(of_pairs)
    ]
    return "\n".join([*tables, _NOTE]) if tables else ""


def _budgets(runs: Iterable[Scored]) -> list[Budget | None]:
    found = {run.details.budget for run in runs if run.details.budget is not None}
    return [*sorted(found, key=lambda budget: (budget.steps, budget.pairs_per_step))] or [None]


def _table(runs: Sequence[Scored], budget: Budget | None) -> str:
    of_scorer = grouped(runs, lambda one: (one.run.system, one.run.encoder, str(sorted(one.details.chosen.items()))))
    rows = sorted(map(_Row, of_scorer.values()), key=lambda row: -float(np.mean(row.correct)))
    rival = next((row for row in rows if row.runs[0].run.system == AGAINST), None)
    table = pivot(rows, {**_COLUMNS, f"p, {AGAINST}": p_cells([row.p(rival) for row in rows])})
    note = [_BATCH_NOTE, ""] if any(map(_takes_unlabelled, runs)) else []
    below = [*note, *origins([one.run for one in runs]), ""]
    return "\n".join([_caption(runs[0], budget), "", *table, _constant(runs[0]), "", *below])


def _caption(one: Scored, budget: Budget | None) -> str:
    details = one.details
    lost = {split: f" ({n:,} dropped)" if n else "" for split, n in details.n_lost.items()}
    counts = ", ".join(
        f"{split} {details.n_pairs[split]:,} of {details.n_documents[split]:,} documents{lost[split]}"
        for split in ("train", "valid", "test")
    )
    return (
        f"**{one.run.corpus}**, protocol {details.protocol}, no document in two splits; pairs: {counts}. "
        f"Budget: {budget or 'none'}."
    )


def _constant(one: Scored) -> str:
    """The row for classifying every pair as a match: accuracy and precision are the share of matches."""
    share = float(np.mean(one.labels))
    f1 = 2 * share / (1 + share)
    cells = [CONSTANT, *(f"{value:.3f}" for value in (share, share, 1.0, f1, 0.5, f1)), "", ""]
    return f"| {' | '.join(cells)} |"


def _takes_unlabelled(one: Scored) -> bool:
    return one.run.settings.get(LABELS_ALONE) is False
