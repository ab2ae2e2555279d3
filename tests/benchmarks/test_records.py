from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.timing import Percentiles
from benchmarks.record_file import RecordError, write_record
from benchmarks.records import read_records
from benchmarks.runs import write_run
from benchmarks.speed.recall import RecallRecord
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


def test_records_and_runs_are_read_as_they_were_written(tmp_path: Path, origin: Origin) -> None:
    run = made_run("evidence", [0.5], origin)
    recall = RecallRecord(
        "ä", "IVF2,Flat", 1, 4, 8, 10, 4, 1, 0.9, 0.5, Percentiles(1, 2, 3), Percentiles(4, 5, 6), origin
    )
    path = write_record(recall, tmp_path)
    write_run(run, tmp_path)
    assert read_records(tmp_path) == [recall, run]
    assert path.name == "recall-ä.json" and '"index": "ä",\n' in path.read_text("utf-8")


def test_a_file_that_is_not_a_record_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    with pytest.raises(RecordError, match=r"notes.json is no record \(KeyError\('kind'\)\); keep nothing else"):
        read_records(tmp_path)
