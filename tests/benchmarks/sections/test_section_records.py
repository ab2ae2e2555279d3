from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.record_file import rebuild, write_record
from benchmarks.sections.records import Arm, FacetsRecord, FaithfulnessRecord, PlantedRecord
from indexer.training.origin import Origin

ARM = Arm("stored", "query", "random", ["a"], {"deletion": [1.0, 0.0]}, {"deletion_area": [0.5]})


@pytest.fixture
def records(origin: Origin) -> list[FacetsRecord | FaithfulnessRecord | PlantedRecord]:
    by_facet = {"method": {"relevant": [0.5, None]}}
    ndcg = {"nDCG@10": {"method": {"document": [0.25, 0.5]}}}
    zeros = {"method": {"document": 0.0}}
    queries, folds = {"method": ["a", "b"]}, {"method": [1, 2]}
    facets = FacetsRecord(
        {"method": "d@0"}, "mean@1", {"exceeding": 4}, False, 5, queries, folds, ndcg, zeros, by_facet, origin
    )
    shares = {"stored": [0.0, 1.0]}
    faithfulness = FaithfulnessRecord(
        "rfc", "rfc@0", "", "mean@1", {"unit": "chunk"}, True, 5, 1, shares, [ARM], 1.5, origin
    )
    plantings: dict[str, list[str | int | float]] = {"host": ["h"], "rank": [3], "iou": [0.5]}
    words = {"short": [10, 20]}
    planted = PlantedRecord(
        "rfc", "rfc@0", "mean@1", {"form": "passage"}, False, 9, 1, 0.0, words, plantings, 2.5, origin
    )
    return [facets, faithfulness, planted]


def test_records_are_read_as_they_were_written(
    records: list[FacetsRecord | FaithfulnessRecord | PlantedRecord], tmp_path: Path
) -> None:
    for record in records:
        assert rebuild(type(record), json.loads(write_record(record, tmp_path).read_text("utf-8"))) == record


def test_names_tell_what_was_measured(records: list[FacetsRecord | FaithfulnessRecord | PlantedRecord]) -> None:
    names = ["facets-d-mean", "faithfulness-rfc-mean-chunk-quick", "planted-rfc-mean-passage-9documents"]
    assert [record.name for record in records] == names
    facets, faithfulness, _ = records
    other = replace(facets.origin, seed=2)
    assert replace(facets, origin=other).name == "facets-d-mean-seed2"
    assert isinstance(faithfulness, FaithfulnessRecord)
    assert replace(faithfulness, split="test", is_quick=False).name == "faithfulness-rfc-mean-test-chunk"
    assert [record.extent for record in records] == [{"queries": 2, "measures": 1}, {"hits": 1}, {"pairs": 1}]
