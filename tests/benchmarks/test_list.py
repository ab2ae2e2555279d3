from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import Programs
from benchmarks.__main__ import main as programs
from benchmarks.list import GROUPS, OTHERS, main, program_of, seconds_of, system_minutes
from benchmarks.record_file import write_record
from benchmarks.records import BuildCost, RetrievalRecord
from indexer.training.origin import Origin


@pytest.fixture
def bm25(origin: Origin) -> RetrievalRecord:
    cost = BuildCost(60.0)
    return RetrievalRecord("rfc", "rfc@0", "bm25", "", {}, "test", 100, 1, {}, cost, 30.0, ["a"], {}, origin)


def test_every_program_is_listed_once() -> None:
    assert isinstance(programs, Programs)
    listed = [name.split()[0] for group in GROUPS.values() for name in group]
    assert sorted({*listed, *OTHERS}) == sorted(programs.help_lines)
    assert set(listed).isdisjoint(OTHERS)


def test_the_program_of_a_record_is_read_off_its_command() -> None:
    def named(command: str) -> str:
        return program_of({"kind": "training", "origin": {"command": command}})

    assert named("python -m benchmarks.kill --kills 3") == "kill"
    assert named("python -m benchmarks.papers_run smith --quick") == "papers_run smith"
    assert named("longmatch train out") == "training"


def test_seconds_are_those_of_fitting_and_of_all_queries() -> None:
    assert seconds_of({"kind": "a", "seconds": 5}) == 5
    assert seconds_of({"kind": "a", "fit_seconds": 2.0, "score_seconds": 3.0}) == 5
    assert seconds_of({"kind": "a", "fit_seconds": 2.0, "seconds_per_query": 0.5, "query_ids": ["a", "b"]}) == 3
    assert seconds_of({"kind": "training", "seconds": 5}) is None and seconds_of({"kind": "a"}) is None


def test_encoding_stands_apart_from_the_systems_that_share_it() -> None:
    encoded = {"seconds": 120.0, "n_tokens": 9}
    record = {"kind": "retrieval", "task": "rfc", "system": "evidence", "split": "test", "build": encoded}
    kept = {**record, "build": {"seconds": 1.0, "n_tokens": 0}, "search_seconds": 30.0}
    valid = {**kept, "split": "valid", "search_seconds": 900.0}
    assert system_minutes([{**record, "search_seconds": 60.0}, kept, valid]) == {
        ("evidence", "rfc"): 1.0,
        ("encoding first", "rfc"): 2.0,
    }


def test_the_list_fits_a_screen(bm25: RetrievalRecord, tmp_path: Path) -> None:
    for one in (bm25, replace(bm25, task="proposals", search_seconds=0.0, build=BuildCost(1.0))):
        write_record(one, tmp_path / "results")
    (tmp_path / "rfc").mkdir()
    (tmp_path / "rfc" / "corpus.jsonl.gz").touch()
    done = CliRunner().invoke(main, ["--results", str(tmp_path / "results"), "--data", str(tmp_path)])
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0]) == (0, "Systems of retrieval, minutes of a recorded run on 2 cores")
    assert (lines[2].split()[-1], lines[2].split()[:3]) == ("here", ["corpus", "to", "fetch"])
    assert next(line for line in lines if line.startswith("  bm25")).split() == ["bm25", "<0.1", "1.5"]
    assert next(line for line in lines if line.startswith("  ann")).split() == ["ann", "an", "index,", "longmatch[ann]"]
    assert len(lines) < 60 and max(map(len, lines)) < 90
