from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.headlines import findings_table, headline_table
from benchmarks.metrics import PRIMARY
from benchmarks.runs import Case, Run
from benchmarks.speed.records import Pass, ThroughputRecord, WayRun
from benchmarks.tasks.on_demand import DemandRecord, DemandRow
from indexer.origin import Origin
from tests.benchmarks.kept_records import kept_record
from tests.benchmarks.made_runs import made_run


def retrieval(system: str, task: str, value: float, origin: Origin) -> Run:
    return made_run(system, [value] * 3, origin, task, encoder="longmatch-minilm@0f" if system == "evidence" else "")


@pytest.fixture
def quality(origin: Origin) -> list[Run]:
    values = {"evidence": 0.5, "words": 0.45, "tfidf": 0.4, "bm25": 0.3, "wmd": 0.9}
    measured = [retrieval(system, "proposals", value, origin) for system, value in values.items()]
    return [*measured, retrieval("bm25", "rfc", 0.2, origin)]


def test_the_headline_has_four_systems_and_a_dash_for_what_was_not_measured(quality: list[Run]) -> None:
    assert headline_table(quality).splitlines()[:6] == [
        "| nDCG@10 | proposals (3 queries) | rfc (3 queries) |",
        "| --- | --- | --- |",
        "| evidence | 0.500 | - |",
        "| words | 0.450 | - |",
        "| TF-IDF | 0.400 | - |",
        "| BM25 | 0.300 | 0.200 |",
    ]


def test_findings_name_differences_with_their_sign(quality: list[Run]) -> None:
    table = findings_table(quality)
    assert "**evidence** compared with TF-IDF: difference in nDCG@10 on proposals | +0.100 |" in table
    assert "**words** compared with BM25: difference in nDCG@10 on proposals | +0.150 |" in table


def test_findings_show_the_largest_loss_and_the_encoded_share(origin: Origin) -> None:
    def row(way: str, candidates: int | None, value: float, tokens: int) -> DemandRow:
        return DemandRow(way, candidates, {PRIMARY: value}, {}, [value], {"10": tokens}, {"10": 1})

    rows = [row("20 candidates", 20, 0.49, 90), row("all", None, 0.5, 1_000)]
    record = DemandRecord("rfc", "rfc@0", "longmatch-minilm@0f", "test", 3, 9, 1_000, 1, 10, rows, 1.0, origin)
    of_few_queries = replace(record, rows=rows[:1])  # of a run that encoded candidates alone
    assert "| at most 0.010; 9% to 9% |" in findings_table([of_few_queries, record])
    assert "Encoding on demand" not in findings_table([of_few_queries])


def test_findings_count_differing_scores_over_all_ways(origin: Origin) -> None:
    counts = {"k 10": (30, 0), "2 threads": (600, 1)}
    cases = [Case(id=way, values={"hits in common": n, "other scores": other}) for way, (n, other) in counts.items()]
    run = Run(task="stability", dataset="papers", system="way to search", origin=origin, cases=cases)
    assert "between 2 ways to search (k, pages, filters, threads, scan) | 1 of 630 |" in findings_table([run])


def test_findings_compare_longmatch_with_the_best_other_program(origin: Origin) -> None:
    values = {"longmatch": 0.5, "txtai@256": 0.25, "lancedb@256": 0.375}
    runs = [made_run(name, [value] * 3, origin, task="peers") for name, value in values.items()]
    assert "difference in nDCG@10 on pets | +0.125 |" in findings_table(runs)
    assert findings_table(runs[1:]) == ""


def test_findings_name_device_and_precision_of_each_speed() -> None:
    kept = kept_record(ThroughputRecord)
    ways = {name: WayRun("float32", [Pass(2.0 if name == "longmatch" else 8.0, 8.0, 400.0)]) for name in kept.ways}
    on_cpu = replace(kept, ways=ways, device="cpu")
    table = findings_table([on_cpu, replace(on_cpu, device="cuda:0")])
    assert "| 4.00 (cpu, float32), 4.00 (cuda:0, float32) |" in table
