"""Checks the arguments of the public functions before anything else is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from engine.errors import IndexMismatch, QueryError
from engine.store.where import where_text

Where: TypeAlias = str | Mapping[str, Any]


def index_path(path: object) -> Path:
    """The folder of an index as a `Path`.

    Raises:
        IndexMismatch: the value is not a path.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise IndexMismatch(f"{path!r:.60} is not a path of an index; pass the folder first, for example 'papers.lm'")
    return Path(path)


def filter_text(where: object) -> str | None:
    """A metadata filter in the language of `engine.store.where`; None for no filter.

    Raises:
        QueryError: the filter is neither a dict nor a text, or the dict is not a valid filter.
    """
    if where is None or isinstance(where, str):
        return where
    if isinstance(where, Mapping):
        return where_text(where)
    raise QueryError(f"the filter is {type(where).__name__}; pass a dict or a text, as {{'year': {{'>=': 2019}}}}")


def doc_id_list(name: str, value: object) -> tuple[str, ...]:
    """The doc_ids of an argument that is one doc_id, a list of doc_ids, or None.

    Raises:
        QueryError: the argument is something else.
    """
    listed = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise QueryError(f"{name} is {value!r:.60}; pass a doc_id or a list of them; of a hit, pass hit.doc_id")
    return tuple(listed)


def weight_mapping(weights: object) -> Mapping[str, float] | None:
    """Weights of sections by name; `engine.search.section_weights` checks names and numbers.

    Raises:
        QueryError: the weights are not a dict.
    """
    if weights is None or isinstance(weights, Mapping):
        return weights
    raise QueryError(f'the weights are {type(weights).__name__}; pass a dict, as {{"claims": 3, "abstract": 0}}')


def check_count(name: str, value: object) -> None:
    """Check that an argument is a whole number.

    Raises:
        QueryError: the argument is not a whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(f"{name} is {value!r:.40}; it must be a whole number")
