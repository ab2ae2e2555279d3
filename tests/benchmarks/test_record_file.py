from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks.record_file import (
    Recorded,
    RecordError,
    failure_text,
    name_of,
    rebuild,
    write_record,
)
from benchmarks.records import read_records
from indexer.origin import Origin


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole(Recorded, kind="whole"):
    label: str
    part: Part
    parts: list[Part]
    by_name: dict[str, Part]
    maybe: Part | None
    pairs: list[tuple[int, float]]
    later: int = 7  # records that are older than this field have none
    names: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"whole-{self.label}"


WHOLE = Whole("ä", Part(1.0), [Part(2.0), Part(3.0)], {"x": Part(4.0)}, Part(5.0), [(1, 2.0)], 8, ["n"])


def test_a_record_is_written_a_field_a_line_and_read_back(tmp_path: Path) -> None:
    path = write_record(WHOLE, tmp_path / "new")
    lines = path.read_text("utf-8").splitlines()
    assert (path.name, lines[1], lines[2]) == ("whole-ä.json", '"kind": "whole",', '"label": "ä",')
    assert len(lines) == 1 + 8 + 2
    assert rebuild(Whole, json.loads(path.read_text("utf-8"))) == WHOLE


def test_a_file_that_is_not_a_record_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    with pytest.raises(RecordError, match=r"notes.json is no record \(KeyError\('kind'\)\); keep nothing else"):
        read_records(tmp_path)


def test_none_is_kept_and_only_a_field_with_a_default_can_be_missing() -> None:
    values = asdict(WHOLE)
    del values["later"]
    values["maybe"] = None
    again = rebuild(Whole, values)
    assert (again.maybe, again.later) == (None, 7)
    with pytest.raises(TypeError, match="label"):
        rebuild(Whole, {})


def test_a_name_leaves_out_what_is_empty_and_the_seed_0() -> None:
    assert (name_of("a", "", "b"), name_of("a", seed=2)) == ("a-b", "a-seed2")


@dataclass(frozen=True)
class Runs(Recorded, kind="runs", file="runs"):
    dataset: str
    parts: list[str]
    origin: Origin

    @property
    def extent(self) -> Mapping[str, int]:
        return {"parts": len(self.parts)}


@pytest.fixture
def begun(origin: Origin) -> Runs:
    return Runs("pets@0", [], origin)


def test_a_record_does_not_take_the_place_of_one_with_more_parts(begun: Runs, tmp_path: Path) -> None:
    write_record(replace(begun, parts=["a", "b"]), tmp_path)
    assert '"parts": ["c", "d"]' in write_record(replace(begun, parts=["c", "d"]), tmp_path).read_text()
    with pytest.raises(RecordError, match=r"runs.json holds 2 parts, not 1; write the smaller one elsewhere: --out"):
        write_record(replace(begun, parts=["a"]), tmp_path)


def test_a_failure_is_named_with_its_share() -> None:
    text = failure_text({"b": "b has no memory; give it some"}, 4)
    assert text.startswith("b has no memory; give it some. 1 of 4 failed; the same command")
