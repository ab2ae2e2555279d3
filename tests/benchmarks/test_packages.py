from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.packages import optional, require
from engine.errors import MissingExtra


def test_require_names_the_missing_package_and_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"a sum needs no-such; install it: pip install "):
        require("a sum", {"numpy": "numpy", "no_such_module": "no-such"}, "peers")


def test_optional_names_the_missing_package_and_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtra, match=r"^BM25 needs bm25s; install it: pip install 'bm25s"):
        optional("bm25s", "BM25", "bm25s")


def test_a_fault_inside_a_package_is_not_taken_for_its_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halfbroken.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        optional("halfbroken", "something", "halfbroken")
