from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.isolation import ProcessFailed, peak_rss_mib, rss_mib, run_forked, run_fresh
from engine.errors import EngineError, QueryError
from tests.benchmarks.telling import fail, tell_sum

MIB = 2**20


def hold(n_mib: int) -> dict[str, Any]:
    """Fill some memory; return the process id too."""
    held = np.ones(n_mib * MIB, np.uint8)
    return {"process": os.getpid(), "sum": int(held.sum())}


def peaks() -> dict[str, Any]:
    """Memory in MiB before, with and after 64 MiB."""
    before = peak_rss_mib()
    held = np.ones(8 << 20)
    measured = {"before": before, "held": rss_mib(), "after": peak_rss_mib() if held[-1] else 0.0}
    return measured


def refuse() -> dict[str, Any]:
    raise QueryError("k is 0; it must be at least 1")


def die() -> dict[str, Any]:
    os._exit(7)


@pytest.mark.slow
def test_a_forked_process_returns_its_result_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "one.x"  # a dot in a name does not begin a suffix
    assert run_forked(tell_sum, 2, 3, name="sum", place=place, advice="add by hand") == {"sum": 5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.x.tell_sum.json", "one.x.tell_sum.txt"]


@pytest.mark.slow
def test_the_error_of_a_failed_process_has_its_last_output_and_the_advice(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)^sum ended with 1 \(.*ValueError: no numbers\); add by hand$"):
        run_forked(fail, name="sum", place=tmp_path / "one", advice="add by hand")


@pytest.mark.slow
def test_a_fresh_process_returns_its_result_and_its_memory() -> None:
    answer, memory = run_fresh(hold, 200)
    assert answer == {"process": answer["process"], "sum": 200 * MIB} and answer["process"] != os.getpid()
    assert memory.start + 190 < memory.peak_anonymous + memory.peak_file
    assert memory.peak >= memory.start + 190 and memory.peak_file > 0


def test_a_cap_is_kept() -> None:
    with pytest.raises(ProcessFailed, match="hold ended with not enough memory under a cap of 700 MiB; allow more"):
        run_fresh(hold, 800, cap_bytes=700 * MIB)


def test_a_refusal_and_a_crash_are_raised_again() -> None:
    with pytest.raises(EngineError, match="k is 0; it must be at least 1"):
        run_fresh(refuse)
    with pytest.raises(ProcessFailed, match=r"die ended with exit code 7$"):
        run_fresh(die)


def test_a_peak_is_remembered() -> None:
    measured, _ = run_fresh(peaks)
    assert measured["held"] > measured["before"] + 50 < measured["after"]
