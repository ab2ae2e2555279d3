from __future__ import annotations

from pathlib import Path

from benchmarks.records import BuildCost, Latency, RecallRecord, RetrievalRecord, read_records, write_record
from engine.origin import Origin


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
    recall = RecallRecord("pets", "IVF2,Flat", 1, 4, 8, 10, 4, 1, 0.9, 0.5, Latency(1, 2, 3), Latency(4, 5, 6), origin)
    paths = [write_record(record, tmp_path) for record in (retrieval, recall)]
    assert [path.name for path in paths] == ["pets-evidence-mean-test.json", "recall-pets.json"]
    assert read_records(tmp_path) == [retrieval, recall]
    assert '"query_ids": ["ä"],\n' in paths[0].read_text("utf-8")
