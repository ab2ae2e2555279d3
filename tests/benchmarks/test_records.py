from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.measuring.latency import Percentiles
from benchmarks.record_file import RecordError, write_record
from benchmarks.records import BuildCost, RecallRecord, RetrievalRecord, read_records
from benchmarks.systems import Settings
from indexer.training.origin import Origin


def test_records_are_read_as_they_were_written(tmp_path: Path, origin: Origin) -> None:
    retrieval = RetrievalRecord(
        task="pets",
        dataset="pets@0",
        system="evidence",
        encoder="mean@0f",
        settings={"exact": True},
        split="test",
        k=100,
        n_queries=1,
        metrics={"nDCG@10": 0.5},
        build=BuildCost(2.0, 100, 50.0),
        search_seconds=0.1,
        query_ids=["ä"],
        per_query={"nDCG@10": [0.5]},
        origin=origin,
    )
    recall = RecallRecord(
        "pets", "IVF2,Flat", 1, 4, 8, 10, 4, 1, 0.9, 0.5, Percentiles(1, 2, 3), Percentiles(4, 5, 6), origin
    )
    paths = [write_record(record, tmp_path) for record in (retrieval, recall)]
    assert [path.name for path in paths] == ["pets-evidence-mean-exact-test.json", "recall-pets.json"]
    assert read_records(tmp_path) == [retrieval, recall]
    assert '"query_ids": ["ä"],\n' in paths[0].read_text("utf-8")


def test_seed_lists_and_given_vectors_are_in_the_name(origin: Origin) -> None:
    def named(system: str, settings: Settings, seed: int) -> str:
        cost, where = BuildCost(1.0), replace(origin, seed=seed)
        record = RetrievalRecord(
            "pets", "pets@0", system, "", settings, "test", 100, 1, {}, cost, 0.1, ["a"], {}, where
        )
        return record.name

    assert named("doc2vec", {"seed": 3}, 3) == "pets-doc2vec-test-seed3"
    assert named("wmd", {"word2vec_seed": 3}, 3) == "pets-wmd-test-seed3"
    assert named("doc2vec", {"seed": 0}, 0) == "pets-doc2vec-test"
    assert named("bm25", {"k1": 1.5}, 3) == "pets-bm25-test"
    assert named("evidence", {"exact": True}, 0) == "pets-evidence-exact-test"
    assert named("evidence", {"exact": False}, 0) == "pets-evidence-test"
    assert named("wmd", {"word_vectors": "glove.txt@0f"}, 0) == "pets-wmd-glove-test"


def test_a_file_that_is_no_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    with pytest.raises(RecordError, match=r"notes.json is no record \(KeyError\('kind'\)\); keep nothing else"):
        read_records(tmp_path)
