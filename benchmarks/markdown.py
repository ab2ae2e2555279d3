"""Tables in Markdown: their lines, their p-values, and the lines below with commands, commits and machines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from benchmarks.runs import Run
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from indexer.origin import Origin

_MODULE = re.compile(r"^python -m benchmarks(?:\.| study )(\w+)")
_ENCODER = " --encoder "
_REPEATABLE = re.compile(rf"(python -m benchmarks run architectures \S+)((?:{_ENCODER}\S+)+)")
_NAMES = {
    **{name: f"run {name}" for name in ("facets", "faithfulness", "planted")},
    **{"position_bias": "run positions", "peers_run": "study peers", "ann": "study vectors"},
    **{
        "recall": "study search",
        "gpu_search": "study search",
        "throughput": "study encode",
        "scale": "study growth",
        "additions": "study growth",
        "plans": "study plan",
    },
    **{"serving": "study serve", "fuzz_readers": "study fuzz"},
}


class Measured(Protocol):
    """Any record."""

    @property
    def origin(self) -> Origin:
        """The origin of the record."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def p_cells(p_values: Sequence[float | None]) -> list[str]:
    """The p-values of one family of tests as cells, adjusted by `holm`; None is not in the family and gives ""."""
    texts = (f"{p:.3f}" if p >= 0.001 else "< 0.001" for p in holm([p for p in p_values if p is not None]))
    return ["" if p is None else next(texts) for p in p_values]


def interval_text(run: Run, measure: str) -> str:
    """The mean of a run with its 95 % bootstrap interval; cases of one group are drawn together."""
    low, high = bootstrap_interval(run.values(measure), groups=run.groups, seed=run.origin.seed)
    return f"{run.mean(measure):.3f} [{low:.3f}, {high:.3f}]"


def run_p(run: Run, rival: Run | None, measure: str) -> float | None:
    """The p-value of the difference of two runs of the same cases, groups swapped as a whole; None without a rival."""
    if rival is None or rival is run:
        return None
    return randomization_p(run.values(measure), rival.values(measure), groups=run.groups, seed=run.origin.seed)


def compared(shown: Sequence[Run], rival_of: Callable[[Run], Run | None], measure: str) -> list[str]:
    """The p-value of each run against its rival, adjusted over the runs of the same cases; "" without a rival."""
    families: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, run in enumerate(shown):
        families[run.dataset, run.split, tuple(run.case_ids)].append(row)
    cells = [""] * len(shown)
    for rows in families.values():
        p_values = [run_p(shown[row], rival_of(shown[row]), measure) for row in rows]
        for row, cell in zip(rows, p_cells(p_values), strict=True):
            cells[row] = cell
    return cells


def origins(records: Sequence[Measured]) -> list[str]:
    """The lines below a table: the commands that rerun its records, then commits and machines; none without records."""
    if not records:
        return []
    commands = _joined(dict.fromkeys(present(record.origin.command) for record in records))
    return ["Run again:", "", *(f"- `{command}`" for command in commands), "", measured(records)]


def _joined(commands: Iterable[str]) -> list[str]:
    """The commands, those of one command line but for a repeatable option as one; each at its first place."""
    values: dict[str, list[str]] = defaultdict(list)
    for command in commands:
        found = _REPEATABLE.fullmatch(command)
        first, own = (found[1], found[2].split(_ENCODER)[1:]) if found else (command, [])
        values[first] += own
    return [first + "".join(_ENCODER + value for value in dict.fromkeys(own)) for first, own in values.items()]


def present(command: str) -> str:
    """A command in its present form: programs that were modules of their own are tasks or studies now."""
    if _MODULE.match(command) and " additions " in command.replace(".", " "):
        command = command.replace(" --documents ", " --add ")
    if " gpu_search " in command:
        command += " --device cuda"
    return _MODULE.sub(lambda found: f"python -m benchmarks {_NAMES.get(found[1], f'study {found[1]}')}", command)


def measured(records: Sequence[Measured]) -> str:
    """The line that names machines, each with its commits."""
    commits: dict[str, dict[str, None]] = {}
    for origin in (record.origin for record in records):
        commit = (origin.commit[:10] or "unknown") + (" with changes" if origin.is_dirty else "")
        commits.setdefault(_machine(origin), {})[commit] = None
    listed = [f"commit{'s' * (len(own) > 1)} {', '.join(own)} on {machine}" for machine, own in commits.items()]
    return f"Measured: {'; '.join(listed)}."


def _machine(origin: Origin) -> str:
    machine = origin.machine
    gpu = f", {machine.gpu}" if machine.gpu else ""
    return f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB{gpu}"


def case_tables(runs: Sequence[Run]) -> str:
    """For each system a table with a row for each case: its labels and values; then the notes and origins."""
    systems: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        systems[run.system].append(run)
    lines: list[str] = []
    for system, own in systems.items():
        cases = [case for run in own for case in run.cases]
        labels = list(dict.fromkeys(name for case in cases for name in case.labels))
        names = list(dict.fromkeys(name for case in cases for name in case.values))
        head = [system[:1].upper() + system[1:], *labels, *names]
        rows = [
            [
                case.id,
                *(case.labels.get(name, "") for name in labels),
                *(number(case.values[name]) if name in case.values else "" for name in names),
            ]
            for case in cases
        ]
        notes = dict.fromkeys(run.details["note"] for run in own if "note" in run.details)
        lines += [*markdown(head, rows), "", *notes, *[""] * bool(notes)]
    return "\n".join([*lines, *origins(runs)])


def number(value: float) -> str:
    """A number as it was rounded when it was recorded: 0.518, 20.5, 1,315."""
    return f"{int(value) if float(value).is_integer() else value:,}"
