"""A run: the answers of one system to every case of one task, one file; every figure of a table is computed from runs.

A file is `TASK/NAME.jsonl.gz` in the folder `runs` of the results: a header with command, commit, seed, machine,
versions, checksums and settings on the first line, then a line for each case. A case holds its ranking and the
judgments of its query, or the values that were measured where there is no ranking.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from benchmarks.systems import Ranking, Settings
from engine.errors import EngineError
from engine.machine import Origin

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ValuesT = TypeVar("ValuesT", bound="DataclassInstance")
CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = CHECKOUT / "benchmarks" / "results"
KEPT = 100  # ranks of a ranking that a file holds
RUNS = "runs"  # the folder, in that of the records
_SUFFIX = ".jsonl.gz"
_DIGITS = 6  # of a score
_SEED = re.compile(r"-seed\d+$")  # of training, at the end of the name of an encoder


class RunError(EngineError):
    """Raised when a file is no run, or when a run that would be replaced holds more."""


def rebuild(cls: type[ValuesT], values: Mapping[str, Any]) -> ValuesT:
    """Build a dataclass from JSON values, and the dataclasses in it; fields with defaults may be missing."""
    hints = get_type_hints(cls)
    return cls(
        **{field.name: _of(hints[field.name], values[field.name]) for field in fields(cls) if field.name in values}
    )


def _of(hint: Any, value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    kind, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return rebuild(hint, value)
    if kind is list:
        return [_of(arguments[0], item) for item in value]
    if kind is dict:
        return {name: _of(arguments[1], item) for name, item in value.items()}
    if kind is UnionType and isinstance(value, dict):
        return _of(next(one for one in arguments if is_dataclass(one)), value)
    return value


@dataclass(frozen=True, kw_only=True)
class Case:
    """One query, pair or document, and the result of the system."""

    id: str
    values: dict[str, float] = field(default_factory=dict)  # by measure; {} where there is a ranking
    ranking: list[tuple[str, float]] = field(default_factory=list)  # the first `KEPT` targets and scores, best first
    relevant: dict[str, int] = field(default_factory=dict)  # judged targets, of a relevance of 1 or above
    beyond: dict[str, int] = field(default_factory=dict)  # ranks, from 1, of relevant targets behind the first `KEPT`
    facts: dict[str, float] = field(default_factory=dict)  # of the case itself, such as the words of the query
    labels: dict[str, str] = field(default_factory=dict)  # of the case itself, by which tables slice
    group: str = ""  # cases of one group are not independent


@dataclass(frozen=True, kw_only=True)
class Run:
    """A system on a task."""

    task: str
    dataset: str  # name@checksum
    system: str
    encoder: str = ""  # name@fingerprint; "" where the system has none
    settings: Settings = field(default_factory=dict)
    variant: str = ""  # in the name of the file: distinguishes runs of one system
    split: str = "test"
    k: int = 0  # depth of the rankings; 0 where there are none
    fit_seconds: float = 0.0  # until the system was ready
    n_tokens: int = 0  # encoded in `fit_seconds`
    seconds: float = 0.0  # of all cases, one after another
    details: dict[str, Any] = field(default_factory=dict)  # of the task, see `details_as`
    origin: Origin
    cases: list[Case] = field(repr=False)

    @property
    def corpus(self) -> str:
        """The name of the dataset."""
        return self.dataset.partition("@")[0]

    @property
    def encoder_name(self) -> str:
        """The name of the encoder, without its fingerprint."""
        return self.encoder.partition("@")[0]

    @property
    def encoder_without_seed(self) -> str:
        """The name of the encoder; the seed of its training, at its end, is left out."""
        return _SEED.sub("", self.encoder_name)

    @property
    def label(self) -> str:
        """The system, and its encoder if it has one."""
        return f"{self.system}, {self.encoder_name}" if self.encoder else self.system

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        parts = (self.corpus, self.system, self.encoder_name, self.variant, self.split)
        seed = f"seed{self.origin.seed}" if self.origin.seed else ""
        return "-".join(filter(None, (*parts, seed))).replace(" ", "-")

    @property
    def case_ids(self) -> list[str]:
        """The ids of the cases, in the order of the file."""
        return [case.id for case in self.cases]

    @property
    def groups(self) -> list[str] | None:
        """The group of each case; None where each case is a group of its own."""
        return [case.group for case in self.cases] if any(case.group for case in self.cases) else None

    @property
    def measures(self) -> list[str]:
        """The measures that `values` knows."""
        return list(self._values)

    def values(self, measure: str) -> list[float]:
        """A value for each case; in [0, 1] for rankings."""
        return self._values[measure]

    def mean(self, measure: str) -> float:
        """The mean over all cases, to four decimals."""
        values = self.values(measure)
        return round(sum(values) / len(values), 4)

    def details_as(self, cls: type[ValuesT]) -> ValuesT:
        """The details of a run, which depend on its task, as a dataclass."""
        return rebuild(cls, self.details)

    @cached_property
    def _values(self) -> dict[str, list[float]]:
        if self.k:
            return _judged(self)
        names = dict.fromkeys(name for case in self.cases for name in case.values)
        return {name: [case.values[name] for case in self.cases] for name in names}


def ranked_case(query_id: str, ranking: Ranking, relevant: Mapping[str, int], **given: Any) -> Case:  # noqa: ANN401
    """A case of a ranking, of which the first `KEPT` targets are kept, scores to six significant digits."""
    first = [(target, float(f"{score:.{_DIGITS}g}")) for target, score in ranking[:KEPT]]
    positive = {target: relevance for target, relevance in relevant.items() if relevance > 0}
    beyond = {target: rank for rank, (target, _) in enumerate(ranking, 1) if rank > KEPT and target in positive}
    return Case(id=query_id, ranking=first, relevant=positive, beyond=beyond, **given)


def _judged(run: Run) -> dict[str, list[float]]:
    from benchmarks.metrics import evaluate

    qrels = {case.id: case.relevant for case in run.cases}
    rankings = {
        case.id: [*(target for target, _ in case.ranking), *sorted(case.beyond, key=case.beyond.__getitem__)]
        for case in run.cases
    }
    return {name: list(of.values()) for name, of in evaluate(qrels, rankings, depth=run.k).items()}


def run_path(run: Run, results: Path = RESULTS) -> Path:
    """The path of the file of a run."""
    return results / RUNS / run.task / f"{run.name}{_SUFFIX}"


def write_run(run: Run, results: Path = RESULTS) -> Path:
    """Write a run; a run of the same name is replaced."""
    path = run_path(run, results)
    if path.exists() and len(known := read_run(path).cases) > len(run.cases):
        raise RunError(
            f"{path} holds {len(known):,} cases, not {len(run.cases):,}; write the smaller run elsewhere: --out "
            "FOLDER, or remove that file"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {name: value for name, value in asdict(run).items() if name != "cases"}
    # Without name and time in its header, a file of the same run has the same bytes.
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        for line in (header, *map(_line, run.cases)):
            packed.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return path


def read_run(path: Path) -> Run:
    """Read one run."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            header = json.loads(next(lines))
            return replace(rebuild(Run, header | {"cases": []}), cases=[_case(json.loads(line)) for line in lines])
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise RunError(f"{path} is no run ({error!r}); keep nothing else in the folder of runs") from error


def read_header(path: Path) -> dict[str, Any]:
    """The first line of the file of a run."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header: dict[str, Any] = json.loads(next(lines))
    return header


def read_runs(results: Path = RESULTS) -> list[Run]:
    """All runs of a folder of results, by task and name."""
    return [read_run(path) for path in run_files(results)]


def run_files(results: Path = RESULTS) -> Iterator[Path]:
    """All runs of a folder of results, by task and name."""
    yield from sorted((results / RUNS).glob(f"*/*{_SUFFIX}"))


def same_cases(run: Run, others: Sequence[Run]) -> list[Run]:
    """The runs of the same cases of the same data, whose values can be compared case by case."""
    asked = (run.dataset, run.split, run.case_ids)
    return [other for other in others if (other.dataset, other.split, other.case_ids) == asked]


def _line(case: Case) -> dict[str, Any]:
    return {name: value for name, value in vars(case).items() if value}


def _case(values: dict[str, Any]) -> Case:
    return Case(**{**values, "ranking": [tuple(hit) for hit in values.get("ranking", [])]})
