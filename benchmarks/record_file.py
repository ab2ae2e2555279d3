"""A record as a JSON file, one field a line, and back again; and records of several parts, kept as each part comes.

One part that fails costs no other, and the same command goes on. What is there so far lies in NAME.unfinished beside
the record that it will be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from benchmarks.code_digests import digests, digests_at
from benchmarks.measured import MEASURED
from engine.errors import EngineError
from indexer.origin import Origin

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


KIND = "kind"
CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = CHECKOUT / "benchmarks" / "results"

RecordT = TypeVar("RecordT", bound="DataclassInstance")


class RecordError(EngineError):
    """Raised when a file is no record, or one that would be replaced holds more."""


class Recorded:
    """A record: a frozen dataclass of a kind, of which a file holds one."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]
    origin: Origin
    failed: dict[str, str]  # of a record of parts: by part why it has no result
    _file: ClassVar[str]

    def __init_subclass__(cls, *, kind: str, file: str = "") -> None:
        """Declare a kind of record.

        Args:
            kind: of the record.
            file: its name, without suffix; "{field}" stands for the value of a field, {quick} for "-quick" where the
                record is of a quick run, and {seeded} for the seed where it is not 0.
        """
        cls.kind, cls._file = kind, file
        KINDS[kind] = cls

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        quick = "-quick" if getattr(self, "is_quick", False) else ""
        seeded = f"-seed{self.origin.seed}" if self.origin.seed else ""
        return self._file.format(**vars(self), quick=quick, seeded=seeded)

    @property
    def extent(self) -> Mapping[str, int]:
        """How many there are of each thing that a record may have only a part of, by what they are called."""
        return {}


KINDS: dict[str, type[Recorded]] = {}


def name_of(*parts: str, seed: int = 0) -> str:
    """The name of a record's file: its parts but empty ones, then the seed where it is not 0."""
    return "-".join([*(part for part in parts if part), *([f"seed{seed}"] if seed else [])])


def write_record(record: Recorded, folder: Path = RESULTS) -> Path:
    """Write `record.name`.json, one field a line; a record of the same name is replaced.

    Raises:
        RecordError: that record holds more, see `refuse_smaller`.
    """
    refuse_smaller(record, record.extent, folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = record_path(record, folder)
    path.write_text(record_text(with_code(record, MEASURED.get(record.kind, ()))), "utf-8")
    return path


def with_code(record: RecordT, paths: Sequence[str]) -> RecordT:
    """The record with digests of the code at these paths, at the commit of its origin, or as the code is now.

    Now, if the checkout differed from its commit. A record that has digests keeps them.
    """
    origin: Origin | None = getattr(record, "origin", None)
    if origin is None or origin.code or not paths:
        return record
    code = digests(paths, CHECKOUT) if origin.is_dirty else digests_at(origin.commit, paths, CHECKOUT)
    return replace(record, origin=replace(origin, code=code))


def refuse_smaller(record: Recorded, extent: Mapping[str, int], folder: Path) -> None:
    """Look whether a record may take the place of the one of its name; to be called before long work, too.

    Args:
        record: the new one, or the beginning of it.
        extent: that it has, or will have.
        folder: of records.

    Raises:
        RecordError: the one that is there holds more of something.
    """
    path = record_path(record, folder)
    if not path.exists():
        return
    values = json.loads(path.read_text("utf-8"))
    values.pop(KIND)
    known = rebuild(type(record), values).extent
    more = [f"{known[name]:,} {name}, not {n:,}" for name, n in extent.items() if n < known.get(name, 0)]
    if more:
        raise RecordError(
            f"{path} holds {' and '.join(more)}; write the smaller one elsewhere: --out FOLDER, or remove that file"
        )


def record_path(record: Recorded, folder: Path) -> Path:
    """Where a record of that name lies."""
    return folder / f"{record.name}.json"


def record_text(record: Recorded) -> str:
    """The record as JSON, one field a line."""
    values = {KIND: record.kind, **asdict(record)}
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def rebuild(cls: type[RecordT], values: Mapping[str, Any]) -> RecordT:
    """Make a dataclass of what JSON gave, and likewise the dataclasses in it, in lists, dicts and options.

    Fields that have defaults may be missing, as in records that are older than the field.
    """
    return cls(**{name: _value(hint, values[name]) for name, hint in _hints(cls).items() if name in values})


@cache  # a file of a run has thousands of cases
def _hints(cls: type[DataclassInstance]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _value(hint: Any, value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str | int | float | None):
        return value
    if is_dataclass(hint) and isinstance(hint, type):
        return rebuild(hint, value)
    arguments = get_args(hint)
    kind = get_origin(hint)
    if kind in (UnionType, Union):
        made = [argument for argument in arguments if is_dataclass(argument)]
        return _value(made[0], value) if made and isinstance(value, dict) else value
    if kind is list:
        return [_value(arguments[0], item) for item in value]
    if kind is tuple:
        return tuple(value)
    if kind is dict:
        return {name: _value(arguments[1], item) for name, item in value.items()}
    return value


_SUFFIX = ".unfinished"


RecordedT = TypeVar("RecordedT", bound=Recorded)
PartT = TypeVar("PartT")


def keep(record: Recorded, folder: Path) -> None:
    """Write what there is so far; a record of that name stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    _unfinished(record, folder).write_text(record_text(record), "utf-8")


def complete(record: Recorded, folder: Path) -> Path:
    """Write the record, failures included, in place of what was kept.

    Raises:
        RecordError: the one of its name holds more; what was kept stays.
    """
    path = write_record(record, folder)
    _unfinished(record, folder).unlink(missing_ok=True)
    return path


def earlier(record: RecordedT, folder: Path, parts: Collection[str]) -> RecordedT | None:
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


def _unfinished(record: Recorded, folder: Path) -> Path:
    return folder / f"{record.name}{_SUFFIX}"


def _is_same(one: Recorded, other: Recorded, aside: Collection[str]) -> bool:
    names = [field.name for field in fields(other) if field.name not in aside]
    both = one.origin, other.origin
    origins = [(origin.command, origin.seed, origin.machine) for origin in both]
    return origins[0] == origins[1] and all(getattr(one, name) == getattr(other, name) for name in names)
