from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.metrics import METRICS, PRIMARY
from benchmarks.quality_overview import overview_table, parts_table
from benchmarks.records import BuildCost, RetrievalRecord
from benchmarks.report import TABLES
from indexer.training.origin import Origin

N = 8


@pytest.fixture
def records(origin: Origin) -> list[RetrievalRecord]:
    values = {"evidence": 0.75, "document": 0.5, "bm25": 0.25}
    return [
        RetrievalRecord(
            task=task,
            dataset=f"{task}@0",
            system=system,
            encoder="" if system == "bm25" else "mean@0f",
            settings={},
            split="test",
            k=100,
            n_queries=N,
            metrics=dict.fromkeys(METRICS, value),
            build=BuildCost(1.0),
            search_seconds=1.0,
            query_ids=[str(number) for number in range(N)],
            per_query={name: [value] * N for name in METRICS},
            origin=origin,
        )
        for task in ("rfc", "proposals")
        for system, value in values.items()
    ]


def test_systems_stand_beside_tasks_the_best_first(records: list[RetrievalRecord]) -> None:
    assert overview_table(records).splitlines()[:5] == [
        "| System | proposals (8) | rfc (8) |",
        "| --- | --- | --- |",
        "| evidence, mean | **0.750** | **0.750** |",
        "| document, mean | 0.500 | 0.500 |",
        "| bm25 | 0.250 | 0.250 |",
    ]


def test_what_the_best_is_not_ahead_of_by_more_than_chance_is_marked(records: list[RetrievalRecord]) -> None:
    document = records[1]
    records[1] = replace(document, per_query={**document.per_query, PRIMARY: [1.0, 0.0] * (N // 2)})
    assert "| document, mean | 0.500 | 0.500 = |" in overview_table(records)


def test_a_system_that_misses_a_task_is_left_out(records: list[RetrievalRecord]) -> None:
    assert "document" not in overview_table([record for record in records if record is not records[1]])
    assert "bm25" not in overview_table([*records[:2], *records[3:]])


def test_an_encoder_trained_without_a_corpus_is_left_aside(records: list[RetrievalRecord]) -> None:
    others = [replace(record, encoder="without-rfc@1f") for record in records if record.encoder]
    assert overview_table([*records, *others]) == overview_table(records)


def test_without_records_there_is_no_table() -> None:
    assert overview_table([]) == ""


def test_parts_of_documents_stand_in_a_table_of_their_own(records: list[RetrievalRecord]) -> None:
    titles = [replace(record, part="title") for record in records]
    assert "| System | proposals, title (8) | rfc, title (8) |" in parts_table(titles)
    assert TABLES["parts"].shown([*records, *titles]) == titles
    assert TABLES["overview"].shown([*records, *titles]) == records
