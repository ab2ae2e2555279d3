"""Reads the records and runs of a folder; each holds its values and everything that is needed to rerun it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

# Each of these modules declares its kinds of records in `KINDS`.
import benchmarks.speed.gpu_search
import benchmarks.speed.recall
import benchmarks.speed.records
import benchmarks.tasks.on_demand  # noqa: F401
from benchmarks.record_file import KIND, KINDS, RESULTS, Recorded, RecordError, rebuild
from benchmarks.runs import Run, read_run, run_files

Record: TypeAlias = Run | Recorded


def read_records(folder: Path = RESULTS) -> list[Record]:
    """All records of a folder, and its runs, by file name.

    Raises:
        RecordError: a file is not a record.
    """
    return [*map(_read, sorted(folder.glob("*.json"))), *map(read_run, run_files(folder))]


def _read(path: Path) -> Record:
    try:
        values = json.loads(path.read_text("utf-8"))
        return rebuild(KINDS[values.pop(KIND)], values)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RecordError(f"{path} is no record ({error!r}); keep nothing else in the folder of records") from error
