from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from benchmarks.scaling.processes import ProcessFailed, ask
from engine.errors import EngineError, QueryError

MIB = 2**20


def hold(n_mib: int) -> dict[str, Any]:
    """Fill some memory; tells whose process did."""
    held = np.ones(n_mib * MIB, np.uint8)
    return {"process": os.getpid(), "sum": int(held.sum())}


def refuse() -> dict[str, Any]:
    raise QueryError("k is 0; it must be at least 1")


def die() -> dict[str, Any]:
    os._exit(7)


def test_another_process_answers_and_its_memory_is_told() -> None:
    answer, memory = ask(hold, 200)
    assert answer == {"process": answer["process"], "sum": 200 * MIB} and answer["process"] != os.getpid()
    assert memory.start + 190 < memory.peak_anonymous + memory.peak_file
    assert memory.peak >= memory.start + 190 and memory.peak_file > 0


def test_a_cap_is_kept() -> None:
    with pytest.raises(ProcessFailed, match="hold ended with not enough memory under a cap of 700 MiB; allow more"):
        ask(hold, 800, cap_bytes=700 * MIB)


def test_a_refusal_and_a_crash_are_told() -> None:
    with pytest.raises(EngineError, match="k is 0; it must be at least 1"):
        ask(refuse)
    with pytest.raises(ProcessFailed, match=r"die ended with exit code 7$"):
        ask(die)
