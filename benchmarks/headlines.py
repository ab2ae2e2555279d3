"""The first tables that a reader sees: four systems on four corpora, and six findings; drawn from runs alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.datasets import TASKS
from benchmarks.markdown import markdown, measured
from benchmarks.metrics import PRIMARY
from benchmarks.peers.peer import OURS
from benchmarks.runs import Run
from benchmarks.speed.ways import END_TO_END, TITLES
from engine.encoders.files import BUNDLED_NAME

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
