"""`import longmatch`: few names, nothing heavy, and the command behind `python -m longmatch`."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import longmatch
from engine.index import Index as EngineIndex
from engine.search.request import parameters

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "torch", "faiss", "sqlalchemy", "click", "engine")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_loads_nothing_heavy() -> None:
    assert run("-c", f"import sys, longmatch; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


@pytest.mark.slow
def test_opening_and_searching_by_id_loads_neither_torch_nor_writers(built_folder: Path) -> None:
    code = f"import sys, longmatch; longmatch.open({str(built_folder)!r}).search_id('doc003'); "
    assert (
        run("-c", code + "print({'torch', 'sqlalchemy', 'indexer.building.builder'} & set(sys.modules))") == "set()\n"
    )


def test_python_m_longmatch_is_the_command() -> None:
    assert run("-m", "longmatch", "--version").startswith("longmatch, version")


PUBLIC = [longmatch.Index.open, longmatch.Index.search, longmatch.Index.add, longmatch.Index.remove, longmatch.build]


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
