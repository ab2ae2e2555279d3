"""Every argument of the public index is described once: in the docstring that `help` shows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

import longmatch
from engine.index import Index as EngineIndex

PUBLIC = [
    longmatch.Index.open,
    longmatch.Index.search,
    longmatch.Index.add,
    longmatch.Index.update,
    longmatch.Index.remove,
    longmatch.build,
]


def described(function: Callable[..., object]) -> dict[str, str]:
    """The first line of what a docstring says on each argument."""
    arguments = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    return dict(re.findall(r"^ {4}(\w+): (.*)$", arguments.group(1), re.MULTILINE)) if arguments else {}


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_every_argument_is_described_in_order(function: Callable[..., object]) -> None:
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    assert list(described(function)) == parameters


def test_a_search_by_id_has_the_arguments_of_a_search() -> None:
    mine, other = (list(inspect.signature(one).parameters)[2:] for one in (EngineIndex.search_id, EngineIndex.search))
    assert mine == other
    public = list(inspect.signature(longmatch.Index.search_id).parameters)[2:]
    assert public == list(inspect.signature(longmatch.Index.search).parameters)[2:] == mine


@pytest.mark.parametrize("name", ["open", "search", "search_id"])
def test_no_description_is_written_twice(name: str) -> None:
    repeated = described(getattr(longmatch.Index, name)).items() & described(getattr(EngineIndex, name)).items()
    assert {argument for argument, _ in repeated} <= {"path"}
