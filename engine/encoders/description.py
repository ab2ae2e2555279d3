"""The files stored with an encoder's parameters: its configuration as JSON, and a model card. No parameters here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from engine.errors import EncoderError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CONFIG_FILE = "longmatch.json"
_CARD_FILE = "README.md"
_LARGEST_FILE = 64 << 20
_LARGEST_NUMBER = 1_000_000  # far above any size of a model, and small enough to be multiplied

ConfigT = TypeVar("ConfigT", bound="DataclassInstance")


def write_description(folder: Path, values: Mapping[str, str | int | float | bool | None], card: str) -> None:
    """Write configuration and model card of an encoder.

    Args:
        folder: an existing folder.
        values: of the configuration, with the encoder's kind as "encoder".
        card: its text, without front matter.
    """
    (folder / CONFIG_FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    (folder / _CARD_FILE).write_text(_FRONT_MATTER + card, encoding="utf-8")


_FRONT_MATTER = """---
library_name: longmatch
tags: [feature-extraction, long-documents]
---
"""


def read_json(file: Path) -> Any:  # noqa: ANN401
    """Read a JSON file that was saved with an encoder.

    Raises:
        EncoderError: it is missing, not a file, too large, or not JSON.
    """
    try:
        return parse_json(file)
    except (OSError, ValueError, RecursionError) as error:
        raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error


def parse_json(file: Path) -> Any:  # noqa: ANN401
    """Read a JSON file of any origin.

    Raises:
        OSError: it is missing, not a file, or too large.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    if not file.is_file():
        raise OSError("no such file")
    if (size := file.stat().st_size) > _LARGEST_FILE:
        raise OSError(f"it has {size:,} bytes, at most {_LARGEST_FILE:,} are read")
    return json.loads(file.read_text(encoding="utf-8"))


def read_configuration(kind: type[ConfigT], values: Mapping[str, Any], file: Path) -> ConfigT:
    """Make a configuration from JSON.

    Args:
        kind: a dataclass of numbers, switches and choices; its own checks also run.
        values: one for each of its fields; other values are ignored.
        file: the source of the values, for the message.

    Raises:
        EncoderError: a value is missing, of another kind than its field, or out of its range.
    """
    kinds = get_type_hints(kind)
    try:
        return kind(**{field.name: _checked(field.name, kinds[field.name], values) for field in fields(kind)})
    except EncoderError as error:
        raise EncoderError(f"{file}: {error}") from error


def _checked(name: str, hint: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    value: Any = values.get(name)
    # An optional value is resolved when a configuration is made, so a file always contains it.
    (kind,) = (own for own in get_args(hint) or (hint,) if own is not NoneType)
    if issubclass(kind, StrEnum):
        fits, wanted = value in list(kind), f"one of {', '.join(kind)}"
    elif kind is bool:
        fits, wanted = type(value) is bool, "true or false"
    else:
        fits = type(value) in ((int, float) if kind is float else (int,)) and abs(value) <= _LARGEST_NUMBER
        wanted = f"a {'' if kind is float else 'whole '}number up to {_LARGEST_NUMBER:,}"
    if not fits:
        raise EncoderError(f"{name} is {value!r:.80}, not {wanted}; save the encoder again")
    return kind(value)
