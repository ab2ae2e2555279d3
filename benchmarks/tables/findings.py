"""The headline of the README and the findings of the results: a number for each question, from runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.datasets import TASKS
from benchmarks.metrics import PRIMARY
from benchmarks.runs import Run
from benchmarks.tables.pivot import Cell, grouped, measured, pivot
from benchmarks.tables.quality import saw_corpus
from engine.encoders.files import BUNDLED_NAME, MINILM_NAME

OURS = "longmatch"  # the peer
END_TO_END = "longmatch, documents to index"  # the case of the speed of indexing
_EVIDENCE = f"evidence, {BUNDLED_NAME}"
_LEFT_OUT = f"evidence, {MINILM_NAME}"
_SYSTEMS = {_EVIDENCE: _EVIDENCE, _LEFT_OUT: _LEFT_OUT, "words": "words", "tfidf": "TF-IDF", "bm25": "BM25"}
_CANDIDATES = 20
_QUERIES = 10


def headline_table(runs: Sequence[Run]) -> str:
    """The quality of some systems on each task; "-" where a system was not measured on a task."""
    found = {(run.label, run.corpus): run for run in runs if run.label in _SYSTEMS}
    if not found:
        return ""
    counts = {run.corpus: len(run.cases) for run in found.values()}
    saw = {system: saw_corpus(run) for (system, _), run in found.items()}

    def cell(task: str, system: str) -> str:
        return f"{found[system, task].mean(PRIMARY):.3f}" if (system, task) in found else "-"

    columns: dict[str, Cell[str] | Sequence[str]] = {
        PRIMARY: lambda system: _SYSTEMS[system],
        "saw the corpus": lambda system: saw.get(system, ""),
        **{f"{task} ({counts[task]} queries)": partial(cell, task) for task in TASKS if task in counts},
    }
    shown = [system for system in _SYSTEMS if system in saw]
    return "\n".join([*pivot(shown, columns), "", measured(list(found.values()))])


def findings_table(runs: Sequence[Run]) -> str:
    """A row for each finding that has runs: the finding, the number, and a link to the details."""
    of = grouped(runs, lambda run: run.task)
    rows = [
        *_margin(of.get("retrieval", []), _EVIDENCE, "tfidf"),
        *_margin(of.get("retrieval", []), "words", "bm25"),
        *_demand(of.get("demand", [])),
        *_stability(of.get("stability", [])),
        *_peers(of.get("peers", [])),
        *_speed(of.get("throughput", [])),
    ]
    columns: dict[str, Cell[tuple[str, str, str]] | Sequence[str]] = {
        "Finding": lambda row: row[0],
        "Number": lambda row: row[1],
        "Details": lambda row: row[2],
    }
    return "\n".join(pivot(rows, columns)) if rows else ""


def _margin(runs: Sequence[Run], system: str, rival: str) -> list[tuple[str, str, str]]:
    """The difference between two systems on the tasks where both were measured."""
    found = {(run.label, run.corpus): run.mean(PRIMARY) for run in runs}
    tasks = [task for task in TASKS if (system, task) in found and (rival, task) in found]
    if not tasks:
        return []
    name = f"**{system.partition(',')[0]}** compared with {_SYSTEMS[rival]}"
    numbers = ", ".join(f"{found[system, task] - found[rival, task]:+.3f}" for task in tasks)
    finding = f"{name}: difference in {PRIMARY} on {', '.join(tasks)}"
    return [(finding, numbers, _link("Retrieval by whole documents", "retrieval"))]


def _demand(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
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
    return [(finding, number, _link("Encoding on demand", "search"))]


def _stability(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    ways = [case for run in runs for case in run.cases if "other scores" in case.values]
    if not ways:
        return []
    differing, compared = (sum(case.values[name] for case in ways) for name in ("other scores", "hits in common"))
    finding = (
        f"**Stable scores**: hits whose score differs between {len(ways)} ways to search (k, pages, filters, threads, "
        "scan)"
    )
    return [(finding, f"{differing:.0f} of {compared:,.0f}", _link("Stability of scores and ranks", "search"))]


def _peers(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
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
    return [(finding, numbers, _link("Comparison with other programs", "peers"))]


def _speed(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    finding = (
        "**Indexing speed**, from file to index, as a multiple of sentence-transformers encoding alone on the same "
        "device"
    )
    numbers = [
        f"{case.values['ratio']:.2f} ({case.labels['device'].partition(',')[0]}, {case.labels['weights']})"
        for run in runs
        for case in run.cases
        if case.id == END_TO_END
    ]
    return [(finding, ", ".join(numbers), _link("Speed of indexing", "speed"))] if runs else []


def _link(title: str, page: str) -> str:
    return f"[{title}](results/{page}.md#{title.lower().replace(' ', '-')})"
