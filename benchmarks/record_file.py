"""A record as a JSON file, one field a line, and back again, whatever dataclasses it is made of. Measures nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from engine.errors import EngineError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

KIND = "kind"
RESULTS = Path(__file__).resolve().parent / "results"

RecordT = TypeVar("RecordT", bound="DataclassInstance")


class RecordError(EngineError):
    """Raised when a file is no record, or one that would be replaced holds more."""


class Recorded(Protocol):
    """What can be written: a frozen dataclass with a kind and a name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Of the file, without suffix."""


@runtime_checkable
class Sized(Recorded, Protocol):
    """A record that may be of a part only: of fewer queries, or fewer of what is compared."""

    @property
    def extent(self) -> Mapping[str, int]:
        """How many there are of each, by what they are called."""


def name_of(*parts: str, seed: int = 0) -> str:
    """The name of a record's file: its parts but empty ones, then the seed where it is not 0."""
    return "-".join([*(part for part in parts if part), *([f"seed{seed}"] if seed else [])])


def write_record(record: Recorded, folder: Path = RESULTS) -> Path:
    """Write `record.name`.json, one field a line; a record of the same name is replaced.

    Raises:
        RecordError: that record holds more, see `refuse_smaller`.
    """
    if isinstance(record, Sized):
        refuse_smaller(record, record.extent, folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = record_path(record, folder)
    path.write_text(record_text(record), "utf-8")
    return path


def refuse_smaller(record: Sized, extent: Mapping[str, int], folder: Path) -> None:
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
    hints = get_type_hints(cls)
    return cls(
        **{field.name: _value(hints[field.name], values[field.name]) for field in fields(cls) if field.name in values}
    )


def _value(hint: Any, value: Any) -> Any:  # noqa: ANN401
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
