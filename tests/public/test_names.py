"""`import longmatch`: few names, nothing heavy, and the command behind `python -m longmatch`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import longmatch

ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "torch", "faiss", "click", "engine")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_names_are_sorted_and_few() -> None:
    assert longmatch.__all__ == sorted(set(longmatch.__all__))
    assert len(longmatch.__all__) <= 13
    assert sorted(longmatch._HOMES) == longmatch.__all__
    assert set(longmatch.__all__) <= set(dir(longmatch))


@pytest.mark.parametrize("name", longmatch.__all__)
def test_every_name_is_what_its_module_defines(name: str) -> None:
    exported = getattr(longmatch, name)
    assert exported is getattr(import_module(longmatch._HOMES[name]), name)
    assert exported.__doc__


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'longmatch' has no attribute 'no_such_name'$"):
        longmatch.no_such_name  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    assert run("-c", f"import sys, longmatch; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


@pytest.mark.slow
def test_opening_and_searching_by_id_loads_no_torch(built_folder: Path) -> None:
    code = f"import sys, longmatch; longmatch.open({str(built_folder)!r}).search_id('doc003'); "
    assert run("-c", code + "print('torch' in sys.modules)") == "False\n"


def test_python_m_longmatch_is_the_command() -> None:
    assert run("-m", "longmatch", "--version").startswith("longmatch, version")
