"""Reads one committed record; the runs, which have thousands of cases and take seconds to read, are left alone."""

from __future__ import annotations

import json
from typing import TypeVar

from benchmarks.record_file import KIND, RESULTS, Recorded, rebuild

RecordT = TypeVar("RecordT", bound=Recorded)


def kept_record(cls: type[RecordT]) -> RecordT:
    """The first committed record of a kind, by file name."""
    for path in sorted(RESULTS.glob("*.json")):
        values = json.loads(path.read_text("utf-8"))
        if values.pop(KIND) == cls.kind:
            return rebuild(cls, values)
    raise LookupError(f"no such record of {cls.kind} in {RESULTS}")
