"""What a run measured, and everything needed to run it again: frozen values, one JSON file a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias, get_args

from benchmarks.behaviour.records import (
    BoilerplateRecord,
    DemandRecord,
    DuplicatesRecord,
    SampleRecord,
    StabilityRecord,
)
from benchmarks.faults.records import FaultsRecord
from benchmarks.partitions.records import FailureRecord, PartitionPlanRecord, PartitionRecord, RayKillRecord
from benchmarks.record_file import KIND, RESULTS, RecordError, rebuild
from benchmarks.runs import Run, read_run, run_files
from benchmarks.speed.memory import MemoryRecord
from benchmarks.speed.plan import PlanRecord
from benchmarks.speed.reading import ReadingRecord
from benchmarks.speed.recall import RecallRecord
from benchmarks.speed.records import (
    AdditionRecord,
    AnnRecord,
    FirstAnswerRecord,
    LoadRecord,
    ScaleRecord,
    ThroughputRecord,
)
from benchmarks.speed.startup import StartupRecord
from benchmarks.store.records import (
    ConcurrencyRecord,
    ExactnessRecord,
    FuzzRecord,
    RowChecksRecord,
)
from indexer.origin import Origin


@dataclass(frozen=True)
class TrainingRecord:
    """What a training run measured on the valid split, step by step."""

    kind: ClassVar[str] = "training"

    run: str
    note: str  # what was tried
    corpora: dict[str, str]  # checksum by name
    settings: dict[str, str | int | float | bool | None]
    n_steps: int  # updates made
    seconds: float  # of updates
    valid_steps: list[int]
    valid: dict[str, list[float]]  # nDCG@10 by corpus and "mean", at each of the steps
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        return f"training-{self.run}"


Record: TypeAlias = (
    Run
    | RecallRecord
    | ExactnessRecord
    | StabilityRecord
    | FaultsRecord
    | ConcurrencyRecord
    | RowChecksRecord
    | MemoryRecord
    | TrainingRecord
    | AnnRecord
    | ThroughputRecord
    | ScaleRecord
    | AdditionRecord
    | PlanRecord
    | DemandRecord
    | SampleRecord
    | BoilerplateRecord
    | DuplicatesRecord
    | FuzzRecord
    | LoadRecord
    | FirstAnswerRecord
    | StartupRecord
    | ReadingRecord
    | PartitionPlanRecord
    | PartitionRecord
    | FailureRecord
    | RayKillRecord
)
_KINDS: Mapping[str, type[Record]] = {kind.kind: kind for kind in get_args(Record) if kind is not Run}


def read_records(folder: Path = RESULTS) -> list[Record]:
    """All records of a folder, and its runs, by file name.

    Raises:
        RecordError: a file is none.
    """
    return [*map(_read, sorted(folder.glob("*.json"))), *map(read_run, run_files(folder))]


def _read(path: Path) -> Record:
    try:
        values = json.loads(path.read_text("utf-8"))
        return rebuild(_KINDS[values.pop(KIND)], values)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RecordError(f"{path} is no record ({error!r}); keep nothing else in the folder of records") from error
