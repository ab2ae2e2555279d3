from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks.record_file import RESULTS, RecordError, name_of, rebuild, write_record
from benchmarks.records import read_records


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole:
    kind: ClassVar[str] = "whole"

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


def test_nothing_stays_nothing_and_a_missing_field_has_its_default() -> None:
    values = asdict(WHOLE)
    del values["later"]
    values["maybe"] = None
    again = rebuild(Whole, values)
    assert (again.maybe, again.later) == (None, 7)


def test_a_missing_field_without_default_is_refused() -> None:
    with pytest.raises(TypeError, match="label"):
        rebuild(Whole, {})


def test_every_committed_record_is_rebuilt_as_it_is_read() -> None:
    for record in read_records(RESULTS):
        values = json.loads(json.dumps(asdict(record)))
        assert json.loads(json.dumps(asdict(rebuild(type(record), values)))) == values


@dataclass(frozen=True)
class Few:
    kind: ClassVar[str] = "few"

    queries: list[str]

    @property
    def name(self) -> str:
        return name_of("few", "", "a", seed=0)

    @property
    def extent(self) -> dict[str, int]:
        return {"queries": len(self.queries)}


def test_a_record_of_fewer_is_refused_and_one_of_as_many_is_not(tmp_path: Path) -> None:
    write_record(Few(["a", "b"]), tmp_path)
    with pytest.raises(RecordError, match=r"few-a.json holds 2 queries, not 1; write the smaller one elsewhere"):
        write_record(Few(["c"]), tmp_path)
    assert json.loads(write_record(Few(["c", "d"]), tmp_path).read_text())["queries"] == ["c", "d"]


def test_a_name_leaves_out_what_is_empty_and_the_seed_0() -> None:
    assert (name_of("a", "", "b"), name_of("a", seed=2)) == ("a-b", "a-seed2")
