"""Tables of retrieval quality by task and system, over all tasks, and by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import zip_longest
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import TASKS
from benchmarks.metrics import DEEP, METRICS, PRIMARY
from benchmarks.runs import Run, same_cases
from benchmarks.significance import holm, randomization_p
from benchmarks.systems import SCORINGS, training_pairs
from benchmarks.tables.pivot import Cell, compared, grouped, interval, interval_text, measured, origins, page, pivot
from engine.encoders.files import BUNDLED_NAME, MINILM_NAME

_ORDER = (*SCORINGS, "document", "bm25")
_LEVEL = 0.05
_LEVEL_MARK = "="
_BUCKETS = 4
_SAW = "Saw the corpus"
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, with a bootstrap interval over queries. {_SAW}: whether the encoder was "
    f"trained on pairs of it. p: two-sided paired randomisation test of {PRIMARY}, adjusted by Holm's method over the "
    "systems of a task in one column, against the document vector of the same encoder, and BM25."
)
_OVERVIEW_NOTE = (
    f"{PRIMARY}, the best of each task in bold. {_SAW}: whether the encoder was trained on pairs of the tasks. "
    f"{_LEVEL_MARK} marks systems that are not significantly worse than the best (two-sided paired randomisation test, "
    f"p at least {_LEVEL}, adjusted by Holm's method over the systems of a task)."
)
_BY_LENGTH = (*SCORINGS, "document", "tfidf", "bm25")
_LENGTHS = {"words": "length of the query", "target_words": "median length of the relevant targets"}
_LENGTH_NOTE = (
    f"{PRIMARY}. Queries are in buckets of equal size (except for equal lengths), by their own length or by the median "
    "length of their relevant targets. In brackets: 95 % bootstrap interval over queries."
)


@cache
def _seen(encoder: str) -> frozenset[str] | None:
    """The corpora of whose pairs an encoder learned; None if that is not known."""
    if encoder not in (BUNDLED_NAME, MINILM_NAME):
        return None
    return frozenset(training_pairs(encoder)) if encoder == BUNDLED_NAME else frozenset()


def saw_corpus(run: Run) -> str:
    """Whether the encoder of a run was trained on pairs of its corpus: yes, no, or "" without an encoder."""
    seen = _seen(run.encoder_name) if run.encoder else None
    return "" if seen is None else "yes" if any(run.corpus.startswith(corpus) for corpus in seen) else "no"


def retrieval_table(runs: Sequence[Run]) -> str:
    """Quality by task and system, with p-values where both runs exist."""
    if not runs:
        return ""
    shown = sorted(runs, key=_place)
    names = [*METRICS[1:], *([DEEP] if any(DEEP in run.measures for run in shown) else [])]
    columns: dict[str, Cell[Run] | Sequence[str]] = {
        "Task (queries)": _task,
        "System": lambda run: run.label,
        _SAW: saw_corpus,
        f"{PRIMARY} [95 %]": lambda run: interval_text(run, PRIMARY),
        **{name: partial(_mean, name) for name in names},
        **{head: compared(shown, _rival_among(shown, is_rival), PRIMARY) for head, is_rival in _RIVALS.items()},
    }
    return page(pivot(shown, columns), [_NOTE], shown)


def _is_document_of(run: Run, rival: Run) -> bool:
    return rival.system == "document" and rival.encoder == run.encoder


def _is_bm25(_run: Run, rival: Run) -> bool:
    return rival.system == "bm25"


# By column: is the second run a rival of the first.
_RIVALS: Mapping[str, Callable[[Run, Run], bool]] = {"p, document": _is_document_of, "p, BM25": _is_bm25}


def _rival_among(runs: Sequence[Run], is_rival: Callable[[Run, Run], bool]) -> Callable[[Run], Run | None]:
    def rival(run: Run) -> Run | None:
        return next((other for other in same_cases(run, runs) if other is not run and is_rival(run, other)), None)

    return rival


def _place(run: Run) -> tuple[int, str, str, int, bool, str]:
    tasks, systems = [*TASKS, run.corpus], [*_ORDER, run.system]
    place = tasks.index(run.corpus), run.corpus, run.split
    return *place, systems.index(run.system), run.encoder_name == MINILM_NAME, run.encoder


def _task(run: Run) -> str:
    return f"{run.corpus}{'' if run.split == 'test' else f', {run.split}'} ({len(run.cases)})"


def _mean(name: str, run: Run) -> str:
    return f"{run.mean(name):.3f}" if name in run.measures else ""


def overview_table(runs: Sequence[Run]) -> str:
    """Systems by tasks, sorted by their mean difference to the best system of each task.

    A system that misses more than a quarter of the tasks is left out; "-" marks a figure that was not
    measured.
    """
    return _overview(runs, measured)


def parts_table(runs: Sequence[Run]) -> str:
    """The overview of searches with a part of each document."""
    named = [replace(run, dataset=f"{run.corpus}, {run.variant}@{run.dataset.partition('@')[2]}") for run in runs]
    return _overview(named, lambda shown: "\n".join(origins(shown)))


def _overview(runs: Sequence[Run], ending: Callable[[Sequence[Run]], str]) -> str:
    by_task: dict[str, dict[str, Run]] = {}
    for run in runs:
        by_task.setdefault(run.corpus, {})[run.label] = run
    tasks = sorted(by_task, key=lambda task: ([*TASKS, task].index(task), task))
    counts = Counter(system for of_task in by_task.values() for system in of_task)
    systems = sorted(system for system, count in counts.items() if count >= len(tasks) - len(tasks) // 4)
    shown = {task: [by_task[task][system] for system in systems if system in by_task[task]] for task in tasks}
    if not all(shown.values()) or not systems:
        return ""
    best = {task: max(run.mean(PRIMARY) for run in shown[task]) for task in tasks}

    def behind(system: str) -> float:
        return fmean(best[task] - by_task[task][system].mean(PRIMARY) for task in tasks if system in by_task[task])

    def saw(system: str) -> str:
        found = dict.fromkeys(saw_corpus(by_task[task][system]) for task in tasks if system in by_task[task])
        return ", ".join(filter(None, found))

    systems.sort(key=lambda system: (behind(system), system))
    columns: dict[str, Cell[str] | Sequence[str]] = {"System": systems, _SAW: saw}
    for task in tasks:
        cells = dict(zip((run.label for run in shown[task]), _cells(shown[task]), strict=True))
        columns[f"{task} ({len(shown[task][0].cases)})"] = [cells.get(system, "-") for system in systems]
    lines = pivot(systems, columns)
    return "\n".join([*lines, "", _OVERVIEW_NOTE, "", ending([run for own in shown.values() for run in own])])


def _cells(runs: Sequence[Run]) -> list[str]:
    """The cells of one task."""
    best = max(runs, key=lambda run: run.mean(PRIMARY))
    others = [run for run in runs if run is not best]
    adjusted = holm(
        [
            randomization_p(best.values(PRIMARY), other.values(PRIMARY), seed=best.origin.seed)
            if other.case_ids == best.case_ids
            else 1.0
            for other in others
        ]
    )
    marks = {id(other): f" {_LEVEL_MARK}" if p >= _LEVEL else "" for other, p in zip(others, adjusted, strict=True)}
    return [
        f"**{run.mean(PRIMARY):.3f}**" if run is best else f"{run.mean(PRIMARY):.3f}{marks[id(run)]}" for run in runs
    ]


def length_table(runs: Sequence[Run]) -> str:
    """A row for each task, system and way of measuring length, a column for each bucket; "" without lengths."""
    rows: list[list[str]] = []
    shown: list[Run] = []
    of_systems = [run for run in runs if run.system in _BY_LENGTH]
    for corpus, of_one in sorted(grouped(of_systems, lambda run: run.corpus).items()):
        for by, text in _LENGTHS.items():
            counted = [run for run in of_one if any(by in case.facts for case in run.cases)]
            # A run of other queries cannot be compared with the others.
            counted = [run for run in counted if run.case_ids == counted[0].case_ids]
            if counted:
                rows += _length_rows(sorted(counted, key=lambda run: run.label), by, f"{corpus}, {text}")
                shown += [run for run in counted if run not in shown]
    if not rows:
        return ""
    heads = ["Task, by", "System", *(f"Bucket {number}" for number in range(1, _BUCKETS + 1))]
    lines = pivot(rows, {head: cells for head, *cells in zip_longest(heads, *rows, fillvalue="")})
    return "\n".join([*lines, "", _LENGTH_NOTE, "", measured(shown)])


def _length_rows(runs: Sequence[Run], by: str, title: str) -> list[list[str]]:
    known = [number for number, case in enumerate(runs[0].cases) if by in case.facts]
    lengths = np.array([runs[0].cases[number].facts[by] for number in known])
    cut = buckets(lengths, _BUCKETS)
    left_out = len(runs[0].cases) - len(known)
    title += f" (left out, all targets absent: {left_out})" if left_out else ""
    spans = [f"{lengths[of].min():,.0f} to {lengths[of].max():,.0f} ({len(of)})" for of in cut]
    values = [(run, np.array(run.values(PRIMARY))[known]) for run in runs]
    return [
        [title, "words (queries)", *spans],
        *(["", run.label, *(interval(own[of].tolist(), seed=run.origin.seed) for of in cut)] for run, own in values),
    ]


def buckets(lengths: NDArray[np.float64], n_buckets: int) -> list[NDArray[np.intp]]:
    """The indices of the queries of each bucket, cut at the quantiles of their (N,) lengths; no bucket is empty.

    Equal lengths stay together, so that buckets can differ in size, and can be fewer than `n_buckets`.
    """
    inner = np.unique(np.quantile(lengths, np.arange(1, n_buckets) / n_buckets))
    bucket = np.searchsorted(inner, lengths, side="left")
    return [np.flatnonzero(bucket == number) for number in np.unique(bucket)]


_RIVAL = "bm25"
_TRAINED = "†"


@dataclass(frozen=True)
class SummaryDetails:
    """The details of a run of summaries, besides its cases, whose values are means over draws."""

    name: str  # of the task, see `benchmarks.scisumm.TASKS`
    is_trained_on_it: bool  # whether the encoder learned from pairs of this dataset
    n_candidates: float  # of a question, mean
    n_draws: int
    deviations: dict[str, float]  # by measure: standard deviation over draws; {} for one draw


def _details(run: Run) -> SummaryDetails:
    return run.details_as(SummaryDetails)


def summary_table(runs: Sequence[Run]) -> str:
    """One table for each task and split, in the order of their names; "" if there is no run."""

    def question(run: Run) -> tuple[str, ...]:
        return _details(run).name, run.split, run.dataset, str(_details(run).n_draws), str(run.origin.seed)

    tables = ["\n".join([*_table(own), ""]) for _, own in sorted(grouped(runs, question).items())]
    return "\n".join([*tables, *origins(runs)])


def _table(runs: Sequence[Run]) -> list[str]:
    """The table of runs of the same questions, and the note below it."""
    shown = sorted(runs, key=lambda run: (not run.encoder, run.encoder, run.system))
    primary, *others = shown[0].measures
    rival = next((run for run in shown if run.system == _RIVAL), None)
    columns: dict[str, Cell[Run] | Sequence[str]] = {
        "System": lambda run: run.label + _TRAINED * _details(run).is_trained_on_it,
        f"{primary} [95 %]": lambda run: f"{_draws_mean(primary, run)} {interval_text(run, primary).partition(' ')[2]}",
        **{name: partial(_draws_mean, name) for name in others},
        "p, BM25": compared(shown, lambda run: rival if rival and rival.case_ids == run.case_ids else None, primary),
    }
    details = _details(shown[0])
    draws = f", mean and standard deviation of {details.n_draws} draws" if details.n_draws > 1 else ""
    note = (
        f"CL-SciSumm, {details.name} ({shown[0].split}): {len(shown[0].cases)} summaries, {details.n_candidates:,.0f} "
        f"candidates each{draws}. In brackets: bootstrap interval. p: two-sided paired randomisation test of {primary} "
        "against BM25, adjusted by Holm's method over the systems. Interval and test draw from "
        f"{len(set(shown[0].groups or ()))} papers, each with all its summaries."
    )
    if any(_details(run).is_trained_on_it for run in shown):
        note += (
            f" {_TRAINED} was trained on pairs of this dataset, citing papers with papers that they cite: the reversed "
            "judgments of the citing tasks."
        )
    return [*pivot(shown, columns), "", note]


def _draws_mean(name: str, run: Run) -> str:
    deviation = _details(run).deviations.get(name)
    return f"{run.mean(name):.3f}" + (f" ± {deviation:.3f}" if deviation is not None else "")
