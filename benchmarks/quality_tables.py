"""Tables of retrieval quality by task and system, over all tasks, and by length; computed from runs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import TASKS
from benchmarks.markdown import compared, interval_text, markdown, measured, origins
from benchmarks.metrics import DEEP, METRICS, PRIMARY
from benchmarks.peers.peer import OURS
from benchmarks.runs import Run, same_cases
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from benchmarks.speed.ways import END_TO_END, TITLES
from benchmarks.systems import SCORINGS
from engine.encoders.files import BUNDLED_NAME, MINILM_NAME

_ORDER = (*SCORINGS, "document", "bm25")
_LEVEL = 0.05
_LEVEL_MARK = "="
_BUCKETS = 4
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, with a bootstrap interval over queries. p: two-sided paired "
    f"randomisation test of {PRIMARY}, adjusted by Holm's method over the systems of a task in one column, against the "
    "document vector of the same encoder, and BM25."
)
_OVERVIEW_NOTE = (
    f"{PRIMARY}, the best of each task in bold. {_LEVEL_MARK} marks systems that are not significantly worse than the "
    f"best (two-sided paired randomisation test, p at least {_LEVEL}, adjusted by Holm's method over the systems of a "
    "task)."
)
_BY_LENGTH = (*SCORINGS, "document", "tfidf", "bm25")
_LENGTHS = {"words": "length of the query", "target_words": "median length of the relevant targets"}
_LENGTH_NOTE = (
    f"{PRIMARY}. Queries are in buckets of equal size (except for equal lengths), by their own length or by the median "
    "length of their relevant targets. In brackets: 95 % bootstrap interval over queries."
)


def retrieval_table(runs: Sequence[Run]) -> str:
    """Quality by task and system, with p-values where both runs exist."""
    if not runs:
        return ""
    shown = sorted(runs, key=_place)
    names = [*METRICS[1:], *([DEEP] if any(DEEP in run.measures for run in shown) else [])]
    head = ["Task (queries)", "System", f"{PRIMARY} [95 %]", *names, *_RIVALS]
    columns = [compared(shown, _rival_among(shown, is_rival), PRIMARY) for is_rival in _RIVALS.values()]
    rows = [[*_quality(run, names), *cells] for run, *cells in zip(shown, *columns, strict=True)]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(shown)])


def _is_document_of(run: Run, rival: Run) -> bool:
    return rival.system == "document" and rival.encoder == run.encoder


def _is_bm25(_run: Run, rival: Run) -> bool:
    return rival.system == "bm25"


# By column: is the second run a rival of the first.
_RIVALS: Mapping[str, Callable[[Run, Run], bool]] = {"p, document": _is_document_of, "p, BM25": _is_bm25}


def _rival_among(runs: Sequence[Run], is_rival: Callable[[Run, Run], bool]) -> Callable[[Run], Run | None]:
    def rival(run: Run) -> Run | None:
        return next((one for one in same_cases(run, runs) if one is not run and is_rival(run, one)), None)

    return rival


def _place(run: Run) -> tuple[int, str, str, int, bool, str]:
    tasks, systems = [*TASKS, run.corpus], [*_ORDER, run.system]
    place = tasks.index(run.corpus), run.corpus, run.split
    return *place, systems.index(run.system), run.encoder_name == MINILM_NAME, run.encoder


def _quality(run: Run, names: Sequence[str]) -> list[str]:
    split = "" if run.split == "test" else f", {run.split}"
    return [
        f"{run.corpus}{split} ({len(run.cases)})",
        run.label,
        interval_text(run, PRIMARY),
        *(f"{run.mean(name):.3f}" if name in run.measures else "" for name in names),
    ]


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
    columns = {task: dict(zip((run.label for run in shown[task]), _cells(shown[task]), strict=True)) for task in tasks}
    best = {task: max(run.mean(PRIMARY) for run in shown[task]) for task in tasks}
    behind = {
        system: fmean(best[task] - by_task[task][system].mean(PRIMARY) for task in tasks if system in by_task[task])
        for system in systems
    }
    order = sorted(systems, key=lambda system: (behind[system], system))
    head = ["System", *(f"{task} ({len(shown[task][0].cases)})" for task in tasks)]
    rows = [[system, *(columns[task].get(system, "-") for task in tasks)] for system in order]
    origin = ending([run for of_task in shown.values() for run in of_task])
    return "\n".join([*markdown(head, rows), "", _OVERVIEW_NOTE, "", origin])


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
    rows = []
    shown: list[Run] = []
    for corpus in sorted({run.corpus for run in runs}):
        of_one = [run for run in runs if run.corpus == corpus and run.system in _BY_LENGTH]
        for by, text in _LENGTHS.items():
            counted = [run for run in of_one if any(by in case.facts for case in run.cases)]
            # A run of other queries cannot be compared with the others.
            counted = [run for run in counted if run.case_ids == counted[0].case_ids]
            if counted:
                rows += _length_rows(sorted(counted, key=lambda run: run.label), by, f"{corpus}, {text}")
                shown += [run for run in counted if run not in shown]
    if not rows:
        return ""
    head = ["Task, by", "System", *(f"Bucket {number}" for number in range(1, _BUCKETS + 1))]
    return "\n".join([*markdown(head, rows), "", _LENGTH_NOTE, "", measured(shown)])


def _length_rows(runs: Sequence[Run], by: str, title: str) -> list[list[str]]:
    known = [number for number, case in enumerate(runs[0].cases) if by in case.facts]
    lengths = np.array([runs[0].cases[number].facts[by] for number in known])
    cut = buckets(lengths, _BUCKETS)
    left_out = len(runs[0].cases) - len(known)
    title += f" (left out, all targets absent: {left_out})" if left_out else ""
    spans = [f"{lengths[of].min():,.0f} to {lengths[of].max():,.0f} ({len(of)})" for of in cut]
    rows = [[title, "words (queries)", *spans]]
    for run in runs:
        values = np.array(run.values(PRIMARY))[known]
        ends = [bootstrap_interval(values[of], seed=run.origin.seed) for of in cut]
        cells = [f"{values[of].mean():.3f} [{low:.3f}, {high:.3f}]" for of, (low, high) in zip(cut, ends, strict=True)]
        rows.append(["", run.label, *cells])
    return [[*row, *[""] * (_BUCKETS + 2 - len(row))] for row in rows]


def buckets(lengths: NDArray[np.float64], n_buckets: int) -> list[NDArray[np.intp]]:
    """The indices of the queries of each bucket, cut at the quantiles of their (N,) lengths; no bucket is empty.

    Equal lengths stay together, so that buckets can differ in size, and can be fewer than `n_buckets`.
    """
    inner = np.unique(np.quantile(lengths, np.arange(1, n_buckets) / n_buckets))
    bucket = np.searchsorted(inner, lengths, side="left")
    return [np.flatnonzero(bucket == number) for number in np.unique(bucket)]


_EVIDENCE = f"evidence, {BUNDLED_NAME}"
_SYSTEMS = {_EVIDENCE: "evidence", "words": "words", "tfidf": "TF-IDF", "bm25": "BM25"}
_CANDIDATES = 20
_QUERIES = 10


def headline_table(records: Sequence[Run]) -> str:
    """The quality of four systems on each task; "-" where a system was not measured on a task."""
    found = {(run.label, run.corpus): run for run in records if run.label in _SYSTEMS}
    counts = {run.corpus: len(run.cases) for run in found.values()}
    tasks = [task for task in TASKS if task in counts]
    head = [PRIMARY, *(f"{task} ({counts[task]} queries)" for task in tasks)]
    values = {place: f"{run.mean(PRIMARY):.3f}" for place, run in found.items()}
    rows = [[name, *(values.get((system, task), "-") for task in tasks)] for system, name in _SYSTEMS.items()]
    return "\n".join([*markdown(head, rows), "", measured(list(found.values()))]) if found else ""


def findings_table(runs: Sequence[Run]) -> str:
    """A row for each finding that has runs: the finding, the number, and a link to the details."""
    of = {task: [run for run in runs if run.task == task] for task in dict.fromkeys(run.task for run in runs)}
    rows = [
        *_margin(of.get("retrieval", []), _EVIDENCE, "tfidf"),
        *_margin(of.get("retrieval", []), "words", "bm25"),
        *_demand(of.get("demand", [])),
        *_stability(of.get("stability", [])),
        *_peers(of.get("peers", [])),
        *_speed(of.get("throughput", [])),
    ]
    return "\n".join(markdown(["Finding", "Number", "Details"], rows)) if rows else ""


def _margin(records: Sequence[Run], system: str, rival: str) -> list[list[str]]:
    """The difference between two systems on the tasks where both were measured."""
    found = {(run.label, run.corpus): run.mean(PRIMARY) for run in records}
    tasks = [task for task in TASKS if (system, task) in found and (rival, task) in found]
    if not tasks:
        return []
    margins = [found[system, task] - found[rival, task] for task in tasks]
    names = f"**{_SYSTEMS[system]}** compared with {_SYSTEMS[rival]}"
    finding = f"{names}: difference in {PRIMARY} on {', '.join(tasks)}"
    numbers = ", ".join(f"{margin:+.3f}" for margin in margins)
    return [[finding, numbers, _link("Retrieval by whole documents", "retrieval")]]


def _demand(runs: Sequence[Run]) -> list[list[str]]:
    losses, shares = [], []
    for run in runs:
        values = {case.id.rpartition(", ")[2]: case.values for case in run.cases}
        losses.append(values["all"][PRIMARY] - values[f"{_CANDIDATES} candidates"][PRIMARY])
        shares.append(values[f"{_CANDIDATES} candidates"][f"tokens after {_QUERIES}, %"] / 100)
    if not losses:
        return []
    finding = (
        f"**Encoding on demand** with {_CANDIDATES} candidates: loss of {PRIMARY} compared with all documents "
        f"encoded; share of tokens encoded after {_QUERIES} queries"
    )
    number = f"at most {max(losses):.3f}; {min(shares):.0%} to {max(shares):.0%}"
    return [[finding, number, _link("Encoding on demand", "search")]]


def _stability(runs: Sequence[Run]) -> list[list[str]]:
    ways = [case for run in runs for case in run.cases if "other scores" in case.values]
    if not ways:
        return []
    differing, compared = (sum(case.values[name] for case in ways) for name in ("other scores", "hits in common"))
    finding = (
        f"**Stable scores**: hits whose score differs between {len(ways)} ways to search (k, pages, filters, threads, "
        "scan)"
    )
    return [[finding, f"{differing:.0f} of {compared:,.0f}", _link("Stability of scores and ranks", "search")]]


def _peers(runs: Sequence[Run]) -> list[list[str]]:
    """The difference between longmatch and the best other program, on each task where both were measured."""
    best: dict[str, dict[bool, float]] = {}
    for run in runs:
        if run.split == "test":
            own = best.setdefault(run.corpus, {})
            own[run.system == OURS] = max(own.get(run.system == OURS, 0.0), run.mean(PRIMARY))
    margins = {task: own[True] - own[False] for task, own in best.items() if len(own) == 2}
    if not margins:
        return []
    finding = f"**longmatch** compared with the best other program: difference in {PRIMARY} on {', '.join(margins)}"
    numbers = ", ".join(f"{margin:+.3f}" for margin in margins.values())
    return [[finding, numbers, _link("Comparison with other programs", "peers")]]


def _speed(runs: Sequence[Run]) -> list[list[str]]:
    if not runs:
        return []
    finding = (
        "**Indexing speed**, from file to index, as a multiple of sentence-transformers encoding alone on the same "
        "device"
    )
    ways = [case for run in runs for case in run.cases if case.id == TITLES[END_TO_END]]
    numbers = [
        f"{case.values['ratio']:.2f} ({case.labels['device'].partition(',')[0]}, {case.labels['weights']})"
        for case in ways
    ]
    return [[finding, ", ".join(numbers), _link("Speed of indexing", "speed")]]


def _link(title: str, page: str) -> str:
    return f"[{title}](results/{page}.md#{title.lower().replace(' ', '-')})"
