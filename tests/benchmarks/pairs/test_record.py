from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.pairs.scorer import Budget, Course
from benchmarks.record_file import write_record
from benchmarks.records import read_records
from indexer.training.origin import Origin
from tests.benchmarks.pairs.matching_records import learned, matching_record

SCORES = [0.9, 0.8, 0.1, 0.7, 0.2, 0.1]


def test_a_record_is_read_as_it_was_written(origin: Origin, tmp_path: Path) -> None:
    record = matching_record(origin, "bm25", SCORES)
    trained = learned(replace(record, scorer="han"), course=Course(10, 5, 0.75, pretraining_steps=10))
    assert write_record(record, tmp_path).name == "matching-pets-aan-document-bm25-0b1c2d.json"
    write_record(trained, tmp_path)
    assert read_records(tmp_path) == [record, trained]


def test_runs_that_differ_have_names_that_differ(origin: Origin) -> None:
    record = matching_record(origin, "bm25", SCORES)
    others = [
        matching_record(origin, "bm25", SCORES, seed=3),
        replace(record, is_quick=True),
        replace(record, pairs="ffffff000000"),  # as of fewer pairs
        replace(record, encoder="mine@0123456789ab"),
        replace(record, encoder="mine@ffffffffffff"),
        replace(record, chosen={"training_tokens": 4000}),
        replace(record, chosen={"training_tokens": 8000}),
        learned(record, Budget(500)),
        learned(record, Budget(500, 16)),
    ]
    names = [other.name for other in [record, *others]]
    assert len(set(names)) == len(names)
    assert names[1:5] == [
        "matching-pets-aan-document-bm25-0b1c2d-seed3",
        "matching-pets-aan-document-bm25-0b1c2d-quick",
        "matching-pets-aan-document-bm25-ffffff",
        "matching-pets-aan-document-bm25-mine@0123456789ab-0b1c2d",
    ]


def test_a_budget_by_default_is_not_told_in_the_name(origin: Origin) -> None:
    record = matching_record(origin, "han", SCORES)
    assert learned(record).name == record.name == "matching-pets-aan-document-han-0b1c2d"
