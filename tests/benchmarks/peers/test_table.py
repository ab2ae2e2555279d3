from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from benchmarks.isolation import Percentiles
from benchmarks.metrics import MEASURED
from benchmarks.runs import Case, Run
from benchmarks.tables.peers import PeerDetails, peers_table
from indexer.origin import Origin

OURS = PeerDetails(
    shared="bert@01",
    versions={},
    dtype="bfloat16",
    threads=2,
    depth=100,
    keeps_text=True,
    n_documents=1234,
    tokens_per_document=2000.4,
    load_seconds=1.0,
    documents_per_second=123.4,
    open_seconds=0.1,
    latency=Percentiles(20.0, 30.0, 40.0),
    index_bytes=4 << 20,
    start_mib=100.0,
    build_peak_mib=300.0,
    search_peak_mib=200.0,
)
TXTAI = replace(
    OURS,
    versions={"txtai": "9.0"},
    keeps_text=False,
    documents_per_second=61.7,
    latency=Percentiles(50.0, 60.0, 70.0),
    index_bytes=1 << 20,
    build_peak_mib=450.0,
)
Made = Callable[..., Run]


@pytest.fixture
def made(origin: Origin) -> Made:
    def run(system: str, details: PeerDetails, quality: float = 0.75, split: str = "test") -> Run:
        cases = [Case(id=f"q{at}", values=dict.fromkeys(MEASURED, quality + at)) for at in (0.25, -0.25)]
        given = {"encoder": "bert@01", "variant": "bfloat16-threads2-k100", "split": split, "origin": origin}
        return Run(task="peers", dataset="pets@ab", system=system, details=asdict(details), cases=cases, **given)

    return run


def test_without_a_run_of_longmatch_on_the_same_machine_there_are_no_ratios(made: Made) -> None:
    ours, other = made("longmatch", OURS), made("txtai", TXTAI)
    alone = peers_table([other]).splitlines()[2]
    assert alone.endswith("| 0.750 |  | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")
    same = replace(other.origin, commit="f" * 40)
    elsewhere = replace(same, machine=replace(same.machine, cores=64))
    line = peers_table([ours, replace(other, origin=elsewhere)]).splitlines()[3]
    assert line.endswith("| 1.000 | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")
    assert "| 61.7 (" in peers_table([ours, replace(other, origin=same)]).splitlines()[3]
