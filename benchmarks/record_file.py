"""Writes and reads a record as a JSON file, one field a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from benchmarks.freshness import CHECKOUT
from engine.errors import EngineError
from indexer.origin import Origin

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


KIND = "kind"
RESULTS = CHECKOUT / "benchmarks" / "results"

RecordT = TypeVar("RecordT", bound="DataclassInstance")


class RecordError(EngineError):
    """Raised when a file is not a record, or when a record that would be replaced holds more."""


class Recorded:
    """A record: a frozen dataclass with a kind; a file holds one record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]
    origin: Origin
    _file: ClassVar[str]

    def __init_subclass__(cls, *, kind: str, file: str = "") -> None:
        """Declare a kind of record.

        Args:
            kind: of the record.
            file: the name of its file, without suffix; "{field}" stands for the value of a field, {quick} for
                "-quick" where the record is of a quick run, and {seeded} for the seed where it is not 0.
        """
        cls.kind, cls._file = kind, file
        KINDS[kind] = cls

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        quick = "-quick" if getattr(self, "is_quick", False) else ""
        seeded = f"-seed{self.origin.seed}" if self.origin.seed else ""
        return self._file.format(**vars(self), quick=quick, seeded=seeded)

    @property
    def extent(self) -> Mapping[str, int]:
        """The counts that are lower in a smaller record of this name, by what they count; see `refuse_smaller`."""
        return {}


KINDS: dict[str, type[Recorded]] = {}


def name_of(*parts: str, seed: int = 0) -> str:
    """The name of a record's file: its parts but empty ones, then the seed where it is not 0."""
    return "-".join([*(part for part in parts if part), *([f"seed{seed}"] if seed else [])]).replace(" ", "-")


def write_record(record: Recorded, folder: Path = RESULTS) -> Path:
    """Write `record.name`.json, one field a line; a record of the same name is replaced.

    Raises:
        RecordError: the record that would be replaced holds more, see `refuse_smaller`.
    """
    refuse_smaller(record, record.extent, folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = record_path(record, folder)
    path.write_text(record_text(record), "utf-8")
    return path


def refuse_smaller(record: Recorded, extent: Mapping[str, int], folder: Path) -> None:
    """Raise a `RecordError` if the existing record of the same name holds more; also to be called before long work.

    `record` is the new record, or its beginning; `extent` is what it holds, or will hold.
    """
    path = record_path(record, folder)
    if not path.exists():
        return
    known = rebuild(type(record), json.loads(path.read_text("utf-8"))).extent
    more = [f"{known[name]:,} {name}, not {n:,}" for name, n in extent.items() if n < known.get(name, 0)]
    if more:
        raise RecordError(
            f"{path} holds {' and '.join(more)}; write the smaller one elsewhere: --out FOLDER, or remove that file"
        )


def record_path(record: Recorded, folder: Path) -> Path:
    """The path of the file of a record."""
    return folder / f"{record.name}.json"


def record_text(record: Recorded) -> str:
    """The record as JSON, one field a line."""
    values = {KIND: record.kind, **asdict(record)}
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def rebuild(cls: type[RecordT], values: Mapping[str, Any]) -> RecordT:
    """Build a dataclass from JSON values, and the dataclasses nested in it, in lists, dicts and options.

    Fields that have defaults may be missing, as in records that are older than the field.
    """
    made = {}
    for name, make in _makers(cls).items():
        if name in values:
            made[name] = values[name] if make is None else make(values[name])
    return cls(**made)


Maker = Callable[[Any], Any]


@cache  # a file of a run has thousands of cases
def _makers(cls: type[DataclassInstance]) -> dict[str, Maker | None]:
    hints = get_type_hints(cls)
    return {field.name: _maker(hints[field.name]) for field in fields(cls)}


def _maker(hint: Any) -> Maker | None:  # noqa: ANN401
    """What makes a value of a type from JSON; None if that is the value itself, as a list of numbers is."""
    if is_dataclass(hint) and isinstance(hint, type):
        return partial(rebuild, hint)
    arguments = get_args(hint)
    kind = get_origin(hint)
    if kind is tuple:
        return tuple
    if kind in (UnionType, Union):
        makers = [_maker(argument) for argument in arguments if is_dataclass(argument)]
    else:
        makers = [_maker(arguments[-1])] if kind in (list, dict) else []
    if not makers or (make := makers[0]) is None:
        return None
    if kind is list:
        return lambda value: [make(item) for item in value]
    if kind is dict:
        return lambda value: {name: make(item) for name, item in value.items()}
    return lambda value: make(value) if isinstance(value, dict) else value


def failure_text(failed: Mapping[str, str], n_wanted: int) -> str:
    """One line on what failed, and what to do."""
    reasons = " | ".join(failed.values())
    return f"{reasons}. {len(failed)} of {n_wanted} failed; the same command measures those alone again"
