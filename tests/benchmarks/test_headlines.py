from __future__ import annotations

from benchmarks.metrics import PRIMARY
from benchmarks.runs import Case, Run
from benchmarks.tables.findings import findings_table
from indexer.origin import Origin
from tests.benchmarks.made_runs import made_run


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
