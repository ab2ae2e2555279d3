"""One pivot from runs to tables in Markdown: rows, columns, intervals, p-values, and the lines below with origins."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TypeAlias, TypeVar

from benchmarks.__main__ import STUDIES, TASKS
from benchmarks.runs import Case, Run
from benchmarks.significance import bootstrap_interval, holm, randomization_p

RowT = TypeVar("RowT")
KeyT = TypeVar("KeyT", bound=Hashable)
Cell: TypeAlias = Callable[[RowT], str]  # a column: a query over a row
_PROGRAM = re.compile(r"python -m benchmarks (?:run|study) (\w+)")
_ENCODER = " --encoder "
# Systems and options that left the tree, with which a command can be repeated only at its own commit.
_LEFT = re.compile(
    r"--(rank|contained|add|workers|words \S+\.lm)\b|[ ,](arc-i|concept-graph|doc2vec|dssm|han|matchbert|re2|smash|"
    r"s-bert-512|s-bigbird|s-longformer)\b"
)
_REPEATABLE = re.compile(rf"(python -m benchmarks run architectures \S+)((?:{_ENCODER}\S+)+)")


def pivot(rows: Sequence[RowT], columns: Mapping[str, Cell[RowT] | Sequence[str]]) -> list[str]:
    """The lines of a table: a line for each row, and for each column a query over rows, or its cells."""
    cells = [[column(row) for row in rows] if callable(column) else column for column in columns.values()]
    lines = [list(columns), ["---"] * len(columns), *zip(*cells, strict=True)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def grouped(items: Iterable[RowT], key: Callable[[RowT], KeyT]) -> dict[KeyT, list[RowT]]:
    """The items of each key, in the order in which keys first occur."""
    groups: dict[KeyT, list[RowT]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def page(lines: Iterable[str], notes: Sequence[str], runs: Sequence[Run]) -> str:
    """A table with its notes and the origins of its runs below."""
    return "\n".join([*lines, "", *(line for note in notes for line in (note, "")), *origins(runs)])


def p_cells(p_values: Sequence[float | None]) -> list[str]:
    """The p-values of one family of tests as cells, adjusted by `holm`; None is not in the family and gives ""."""
    texts = (f"{p:.3f}" if p >= 0.001 else "< 0.001" for p in holm([p for p in p_values if p is not None]))
    return ["" if p is None else next(texts) for p in p_values]


def by_case(runs: Sequence[Run], measure: str) -> list[float]:
    """The mean of each case over runs of the same cases, such as those of several seeds."""
    return [fmean(values) for values in zip(*(run.values(measure) for run in runs), strict=True)]


def interval(
    values: Sequence[float],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
    spread: str = "",
    sign: str = "",
) -> str:
    """The mean with its 95 % bootstrap interval; cases of one group are drawn together."""
    low, high = bootstrap_interval(values, groups=groups, seed=seed)
    return f"{fmean(values):{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def interval_text(run: Run, measure: str) -> str:
    """The mean of a run, to four decimals as `Run.mean` rounds it, with its interval."""
    _, _, ends = interval(run.values(measure), groups=run.groups, seed=run.origin.seed).partition(" ")
    return f"{run.mean(measure):.3f} {ends}"


def run_p(run: Run, rival: Run | None, measure: str) -> float | None:
    """The p-value of the difference of two runs of the same cases, groups swapped as a whole; None without a rival."""
    if rival is None or rival is run:
        return None
    return randomization_p(run.values(measure), rival.values(measure), groups=run.groups, seed=run.origin.seed)


def compared(shown: Sequence[Run], rival_of: Callable[[Run], Run | None], measure: str) -> list[str]:
    """The p-value of each run against its rival, adjusted over the runs of the same cases; "" without a rival."""
    cells = [""] * len(shown)
    places = grouped(range(len(shown)), lambda row: (shown[row].dataset, shown[row].split, tuple(shown[row].case_ids)))
    for rows in places.values():
        p_values = [run_p(shown[row], rival_of(shown[row]), measure) for row in rows]
        for row, cell in zip(rows, p_cells(p_values), strict=True):
            cells[row] = cell
    return cells


def origins(records: Sequence[Run]) -> list[str]:
    """The lines below a table: the commands that rerun its records, then commits and machines; none without records."""
    if not records:
        return []
    commands = _joined(dict.fromkeys(record.origin.command for record in records))
    lines: list[str] = []
    for is_there, title in ((True, "Run again:"), (False, "Run again at a commit below, which has the program:")):
        if own := [command for command in commands if can_repeat(command) is is_there]:
            lines += [title, "", *(f"- `{command}`" for command in own), ""]
    return [*lines, measured(records)]


def can_repeat(command: str) -> bool:
    """Whether the program of a command is still here, with its systems and options."""
    words = _PROGRAM.match(command)
    is_here = words is None or words[1] in TASKS.modules or words[1] in STUDIES.modules
    return is_here and not _LEFT.search(command)


def _joined(commands: Iterable[str]) -> list[str]:
    """The commands, those of one command line but for a repeatable option as one; each at its first place."""
    values: dict[str, list[str]] = defaultdict(list)
    for command in commands:
        found = _REPEATABLE.fullmatch(command)
        first, own = (found[1], found[2].split(_ENCODER)[1:]) if found else (command, [])
        values[first] += own
    return [first + "".join(_ENCODER + value for value in dict.fromkeys(own)) for first, own in values.items()]


def measured(records: Sequence[Run]) -> str:
    """The line that names machines, each with its commits."""
    commits: dict[str, dict[str, None]] = {}
    for origin in (record.origin for record in records):
        commit = (origin.commit[:10] or "unknown") + (" with changes" if origin.is_dirty else "")
        commits.setdefault(str(origin.machine), {})[commit] = None
    listed = [f"commit{'s' * (len(own) > 1)} {', '.join(own)} on {machine}" for machine, own in commits.items()]
    return f"Measured: {'; '.join(listed)}."


def case_tables(runs: Sequence[Run]) -> str:
    """For each system a table with a row for each case: its labels and values; then the notes and origins."""
    lines: list[str] = []
    for system, own in grouped(runs, lambda run: run.system).items():
        cases = [case for run in own for case in run.cases]
        columns: dict[str, Cell[Case]] = {system[:1].upper() + system[1:]: lambda case: case.id}
        for name in dict.fromkeys(name for case in cases for name in case.labels):
            columns[name] = partial(_label, name)
        for name in dict.fromkeys(name for case in cases for name in case.values):
            columns[name] = partial(_number, name)
        notes = dict.fromkeys(run.details["note"] for run in own if "note" in run.details)
        lines += [*pivot(cases, columns), "", *notes, *[""] * bool(notes)]
    return "\n".join([*lines, *origins(runs)])


def _label(name: str, case: Case) -> str:
    return case.labels.get(name, "")


def _number(name: str, case: Case) -> str:
    """A number as it was rounded when it was recorded: 0.518, 20.5, 1,315."""
    value = case.values.get(name)
    return "" if value is None else f"{int(value) if float(value).is_integer() else value:,}"
