"""Checks the arguments of the public functions before anything else is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from engine.errors import IndexMismatch, QueryError

Where: TypeAlias = str | Mapping[str, Any]


def index_path(path: object) -> Path:
    """The folder of an index as a `Path`.

    Raises:
        IndexMismatch: the value is not a path.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise IndexMismatch(f"{path!r:.60} is not a path of an index; pass the folder first, for example 'papers.lm'")
    return Path(path)


def check_count(name: str, value: object) -> None:
    """Check that an argument is a whole number.

    Raises:
        QueryError: the argument is not a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(f"{name} is {value!r:.40}; it must be a whole number")
