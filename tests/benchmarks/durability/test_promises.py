"""The README's lines say what the records count, and would not hide a broken promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.durability.promises import promise_lines
from benchmarks.durability.records import KillRecord
from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import ExactnessRecord, read_records

RECORDS = read_records(RESULTS)
KILL = next(record for record in RECORDS if isinstance(record, KillRecord))
EXACT = next(record for record in RECORDS if isinstance(record, ExactnessRecord) and record.n_certified)


def test_a_lost_document_is_told() -> None:
    (line,) = promise_lines([replace(KILL, n_lost=3)])
    assert f"{KILL.n_timed_kills} kills at random moments" in line and ": 3 documents lost, " in line


def test_a_ranking_that_differs_is_told() -> None:
    (line,) = promise_lines([replace(EXACT, n_certified=500, n_ranked_otherwise=2)])
    assert "500 certified rankings, 2 of them other than a double loop" in line


def test_records_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    for record in RECORDS:
        write_record(record, tmp_path)
    assert read_records(tmp_path) == RECORDS
