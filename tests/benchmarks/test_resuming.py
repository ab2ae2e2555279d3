from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks.record_file import RecordError
from benchmarks.resuming import complete, earlier, failure_text, keep, measure_parts
from engine.errors import EngineError
from indexer.training.origin import Origin


@dataclass(frozen=True)
class Runs:
    kind: ClassVar[str] = "runs"

    dataset: str
    parts: list[str]
    origin: Origin
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "runs"

    @property
    def extent(self) -> Mapping[str, int]:
        return {"parts": len(self.parts)}


@pytest.fixture
def begun(origin: Origin) -> Runs:
    return Runs("pets@0", [], origin)


def test_a_part_that_fails_costs_no_other_and_is_told_after_each() -> None:
    heard: list[tuple[list[str], list[str]]] = []

    def measure(name: str) -> str:
        if name == "b":
            raise EngineError("b has no memory; give it some")
        return name.upper()

    measured, failed = measure_parts(
        ["a", "b", "c", "d"], {"c": "kept"}, measure, lambda done, lost: heard.append((list(done), list(lost)))
    )
    assert (measured, failed) == ({"a": "A", "c": "kept", "d": "D"}, {"b": "b has no memory; give it some"})
    assert heard == [(["a", "c"], []), (["a", "c"], ["b"]), (["a", "c", "d"], ["b"])]
    assert failure_text(failed, 4).startswith("b has no memory; give it some. 1 of 4 failed; the same command")


def test_what_was_kept_is_found_by_the_same_run_alone(begun: Runs, tmp_path: Path) -> None:
    keep(replace(begun, parts=["a"]), tmp_path)
    assert not (tmp_path / "runs.json").exists()
    found = earlier(begun, tmp_path, ["parts"])
    assert found is not None and found.parts == ["a"]
    newer = replace(begun, origin=replace(begun.origin, commit="fedcba9876543210"))
    assert earlier(newer, tmp_path, ["parts"]) == found
    for other in (
        replace(begun, dataset="pets@1"),
        replace(begun, origin=replace(begun.origin, command="python -m other")),
        replace(begun, origin=replace(begun.origin, seed=1)),
    ):
        assert earlier(other, tmp_path, ["parts"]) is None


def test_a_whole_record_is_measured_anew_and_one_with_failures_goes_on(begun: Runs, tmp_path: Path) -> None:
    keep(begun, tmp_path)
    complete(replace(begun, parts=["a", "b"]), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]
    assert earlier(begun, tmp_path, ["parts"]) is None
    complete(replace(begun, parts=["a", "b"], failed={"c": "no memory"}), tmp_path)
    found = earlier(begun, tmp_path, ["parts"])
    assert found is not None and found.parts == ["a", "b"]


def test_a_record_does_not_take_the_place_of_one_with_more_parts(begun: Runs, tmp_path: Path) -> None:
    complete(replace(begun, parts=["a", "b"]), tmp_path)
    keep(replace(begun, parts=["a"]), tmp_path)
    with pytest.raises(RecordError, match=r"runs.json holds 2 parts, not 1; write the smaller one elsewhere: --out"):
        complete(replace(begun, parts=["a"]), tmp_path)
    assert (tmp_path / "runs.unfinished").exists()
