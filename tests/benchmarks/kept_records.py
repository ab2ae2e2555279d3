"""Reads one committed record; the runs, which have thousands of cases and take seconds to read, are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from benchmarks.record_file import KIND, RESULTS, Recorded, rebuild

RecordT = TypeVar("RecordT", bound=Recorded)


def kept_record(cls: type[RecordT], is_wanted: Callable[[RecordT], bool] = lambda record: True) -> RecordT:
    """The first committed record of a kind that is wanted, by file name."""
    for path in sorted(RESULTS.glob("*.json")):
        values = json.loads(path.read_text("utf-8"))
        if values.pop(KIND) == cls.kind and is_wanted(record := rebuild(cls, values)):
            return record
    raise LookupError(f"no such record of {cls.kind} in {RESULTS}")
