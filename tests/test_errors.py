"""The base class of errors, its leaves, and the tree in the docstring that shows them."""

from __future__ import annotations

import re

import pytest

from engine import errors
from engine.errors import EngineError, MissingExtra

LEAVES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EngineError)]


def test_the_tree_in_the_docstring_shows_all_errors() -> None:
    shown = re.findall(r"^    (?:[├└]── )?(\w+)", errors.__doc__ or "", re.MULTILINE)
    assert sorted(shown) == sorted(leaf.__name__ for leaf in LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_docstring_of_every_error_states_when_it_is_raised(leaf: type[EngineError]) -> None:
    assert re.match(r"(Raised|Base) ", leaf.__doc__ or "")


def test_a_missing_extra_names_feature_package_and_command() -> None:
    error = MissingExtra("The page", "fastapi", "serve")
    assert str(error) == "The page needs fastapi; install it: pip install 'longmatch[serve]'"
    assert isinstance(error, EngineError)
