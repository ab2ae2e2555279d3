from __future__ import annotations

import pytest

from benchmarks.packages import require
from engine.errors import MissingExtra


def test_packages_that_are_there_are_enough() -> None:
    require("a sum", {"numpy": "numpy"}, "benchmarks")
    require("nothing", {}, "benchmarks")


def test_a_missing_one_is_told_with_its_extra() -> None:
    with pytest.raises(MissingExtra, match=r"a sum needs no-such; install it: pip install 'longmatch\[ann\]'"):
        require("a sum", {"numpy": "numpy", "no_such_module": "no-such"}, "ann")
