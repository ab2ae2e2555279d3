"""The README's lines would not hide a broken promise."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.records import read_records
from benchmarks.store.records import ExactnessRecord, KillRecord

RECORDS = read_records()
KILL = next(record for record in RECORDS if isinstance(record, KillRecord))
EXACT = next(record for record in RECORDS if isinstance(record, ExactnessRecord) and record.n_certified)


def test_a_lost_document_is_shown() -> None:
    (line,) = replace(KILL, n_lost=3).promises
    assert f"{KILL.n_timed_kills} kills at random moments" in line and ": 3 documents lost, " in line


def test_a_ranking_that_differs_is_shown() -> None:
    (line,) = replace(EXACT, n_certified=500, n_ranked_otherwise=2).promises
    assert "500 certified rankings, 2 of them other than a double loop" in line
