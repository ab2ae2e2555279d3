"""Runs of several parts, each kept as it comes: one that fails costs no other, and the same command goes on.

What is there so far lies in NAME.unfinished beside the record that it will be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.record_file import KIND, Recorded, rebuild, record_path, record_text, write_record
from engine.errors import EngineError
from indexer.training.origin import Origin

_SUFFIX = ".unfinished"


class Resumable(Recorded, Protocol):
    """A record of parts."""

    @property
    def failed(self) -> Mapping[str, str]:
        """By part why it has no result."""

    @property
    def origin(self) -> Origin:
        """Where the record comes from."""


ResumableT = TypeVar("ResumableT", bound=Resumable)
PartT = TypeVar("PartT")


def keep(record: Resumable, folder: Path) -> None:
    """Write what there is so far; a record of that name stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    _unfinished(record, folder).write_text(record_text(record), "utf-8")


def complete(record: Resumable, folder: Path) -> Path:
    """Write the record, failures included, in place of what was kept.

    Raises:
        RecordError: the one of its name holds more; what was kept stays.
    """
    path = write_record(record, folder)
    _unfinished(record, folder).unlink(missing_ok=True)
    return path


def earlier(record: ResumableT, folder: Path, parts: Collection[str]) -> ResumableT | None:
    """A run of the same that did not end, or in which a part failed; None where there is none.

    It is the same if all fields are equal, and the command, the seed and the
    machine; code may have changed since.

    Args:
        record: of the run that begins, its parts empty.
        folder: of records.
        parts: the fields that hold what is measured part by part.
    """
    for path in (_unfinished(record, folder), record_path(record, folder)):
        if not path.exists():
            continue
        values = json.loads(path.read_text("utf-8"))
        values.pop(KIND)
        found = rebuild(type(record), values)
        if (path.suffix == _SUFFIX or found.failed) and _is_same(found, record, {*parts, "failed", "origin"}):
            return found
    return None


def measure_parts(
    wanted: Sequence[str],
    kept: Mapping[str, PartT],
    measure: Callable[[str], PartT],
    on_part: Callable[[Mapping[str, PartT], Mapping[str, str]], None],
) -> tuple[dict[str, PartT], dict[str, str]]:
    """Measure what is not there yet, one part after another.

    Args:
        wanted: parts by name.
        kept: those that an earlier run measured.
        measure: measures one; an `EngineError` of it is a part that failed.
        on_part: gets after each one what was measured, and what failed and why, in the order of `wanted`.

    Returns:
        Both, at the end.
    """
    measured, failed = {name: kept[name] for name in wanted if name in kept}, dict[str, str]()
    for name in wanted:
        if name in kept:
            continue
        try:
            measured[name] = measure(name)
        except EngineError as error:
            failed[name] = str(error)
        measured = {one: measured[one] for one in wanted if one in measured}
        on_part(measured, failed)
    return measured, failed


def failure_text(failed: Mapping[str, str], n_wanted: int) -> str:
    """One line on what failed, and what to do."""
    reasons = " | ".join(failed.values())
    return f"{reasons}. {len(failed)} of {n_wanted} failed; the same command measures those alone again"


def _unfinished(record: Resumable, folder: Path) -> Path:
    return folder / f"{record.name}{_SUFFIX}"


def _is_same(one: Resumable, other: Resumable, aside: Collection[str]) -> bool:
    names = [field.name for field in fields(other) if field.name not in aside]
    both = one.origin, other.origin
    origins = [(origin.command, origin.seed, origin.machine) for origin in both]
    return origins[0] == origins[1] and all(getattr(one, name) == getattr(other, name) for name in names)
