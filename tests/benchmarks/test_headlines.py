from __future__ import annotations

import pytest

from benchmarks.metrics import PRIMARY
from benchmarks.runs import Case, Run
from benchmarks.tables.findings import END_TO_END, findings_table, headline_table
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


def retrieval(system: str, task: str, value: float, origin: Origin) -> Run:
    return made_run(system, [value] * 3, origin, task, encoder="longmatch-minilm@0f" if system == "evidence" else "")


@pytest.fixture
def quality(origin: Origin) -> list[Run]:
    values = {"evidence": 0.5, "words": 0.45, "tfidf": 0.4, "bm25": 0.3, "wmd": 0.9}
    measured = [retrieval(system, "proposals", value, origin) for system, value in values.items()]
    return [*measured, retrieval("bm25", "rfc", 0.2, origin)]


def test_the_headline_has_the_systems_and_a_dash_for_what_was_not_measured(quality: list[Run]) -> None:
    assert headline_table(quality).splitlines()[:6] == [
        "| nDCG@10 | saw the corpus | proposals (3 queries) | rfc (3 queries) |",
        "| --- | --- | --- | --- |",
        "| evidence, longmatch-minilm | yes | 0.500 | - |",
        "| words |  | 0.450 | - |",
        "| TF-IDF |  | 0.400 | - |",
        "| BM25 |  | 0.300 | 0.200 |",
    ]


def test_findings_name_differences_with_their_sign(quality: list[Run]) -> None:
    table = findings_table(quality)
    assert "**evidence** compared with TF-IDF: difference in nDCG@10 on proposals | +0.100 |" in table
    assert "**words** compared with BM25: difference in nDCG@10 on proposals | +0.150 |" in table


def test_findings_show_the_largest_loss_and_the_encoded_share(origin: Origin) -> None:
    values = {"20 candidates": {PRIMARY: 0.49, "tokens after 10, %": 9.0}, "all": {PRIMARY: 0.5}}
    cases = [Case(id=f"rfc (3), {way}", values=own) for way, own in values.items()]
    run = Run(task="demand", dataset="rfc@0", system="encoded", origin=origin, cases=cases)
    assert "| at most 0.010; 9% to 9% |" in findings_table([run])


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


def test_findings_name_device_and_precision_of_each_speed(origin: Origin) -> None:
    cases = [
        Case(id=END_TO_END, labels={"device": f"{device}, 2 threads", "weights": "float32"}, values={"ratio": 4.0})
        for device in ("cpu", "cuda:0")
    ]
    run = Run(task="throughput", dataset="papers", system="way to encode", origin=origin, cases=cases)
    assert "| 4.00 (cpu, float32), 4.00 (cuda:0, float32) |" in findings_table([run])
