"""The base class of errors, its leaves, and the tree in the docstring that shows them."""

from __future__ import annotations

import re

import pytest

from engine import errors
from engine.errors import EngineError, MissingExtra, install_command

LEAVES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EngineError)]


def test_the_tree_in_the_docstring_shows_all_errors() -> None:
    shown = re.findall(r"^    (?:[├└]── )?(\w+)", errors.__doc__ or "", re.MULTILINE)
    assert sorted(shown) == sorted(leaf.__name__ for leaf in LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_docstring_of_every_error_states_when_it_is_raised(leaf: type[EngineError]) -> None:
    assert re.match(r"(Raised|Base) ", leaf.__doc__ or "")


def test_a_missing_extra_names_feature_package_and_command() -> None:
    error = MissingExtra("The table", "pyarrow", "arrow")
    assert str(error) == "The table needs pyarrow; install it: pip install 'pyarrow>=21'"
    assert isinstance(error, EngineError)


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("serve", "pip install 'fastapi>=0.165' uvicorn"),
        ("none", "pip install pack"),  # an extra that the installed metadata do not know
    ],
)
def test_the_command_names_packages_of_the_registry(extra: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    required = ["click>=8", 'fastapi>=0.165; extra == "serve"', 'uvicorn; extra == "serve"', 'x; extra == "other"']
    monkeypatch.setattr("engine.errors.requires", lambda _: required)
    assert install_command(extra, "Pack") == command
