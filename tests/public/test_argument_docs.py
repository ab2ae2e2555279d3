"""Every argument of the public index is described once: in the docstring that `help` shows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

import longmatch
from engine.index import Index as EngineIndex
from engine.search.request import parameters

PUBLIC = [
    longmatch.Index.open,
    longmatch.Index.search,
    longmatch.Index.add,
    longmatch.Index.remove,
    longmatch.build,
]


def described(function: Callable[..., object]) -> dict[str, str]:
    """The first line of what a docstring says on each argument."""
    arguments = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    return dict(re.findall(r"^ {4}(\w+): (.*)$", arguments.group(1), re.MULTILINE)) if arguments else {}


def named(function: Callable[..., object]) -> list[str]:
    """The arguments of a function; in place of `options` those that a search has."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "options")]
    takes_options = "options" in inspect.signature(function).parameters
    return names + [one.name for one in parameters() if takes_options]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_every_argument_is_described_in_order(function: Callable[..., object]) -> None:
    assert list(described(function)) == named(function)


def test_no_description_is_written_twice() -> None:
    repeated = described(longmatch.Index.open).items() & described(EngineIndex.open).items()
    assert {argument for argument, _ in repeated} <= {"path"}
