"""Parts of the tables that the pages do not show; tests/benchmarks/test_committed_pages.py compares the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.speed.encode.tables import Spread, limit_shares, limit_table, ratios, throughput_table
from benchmarks.speed.encode.ways import WAYS
from benchmarks.speed.records import Pass, ThroughputRecord, WayRun
from tests.benchmarks.kept_records import kept_record


@pytest.fixture(scope="module")
def record() -> ThroughputRecord:
    """Two rounds on two threads of a processor; sentence-transformers takes 8 and 12 s."""
    kept = kept_record(ThroughputRecord)
    rival = WayRun("float32", [Pass(8.0, 16.0, 400.0), Pass(12.0, 24.0, 400.0)])
    products = [{"float32 8x8x8": 400.0, "bfloat16 8x8x8": 1000.0}, {"float32 8x8x8": 250.0, "bfloat16 8x8x8": 800.0}]
    on_cpu = replace(kept, device="cpu", threads=2, operator_seconds={"linear layers": 1.0})
    ways = {name: rival for name in kept.ways}
    return replace(on_cpu, gflop=1000.0, ways=ways, indexing=kept.indexing[:2], products=products)


def test_ratios_and_shares_are_of_the_same_round(record: ThroughputRecord) -> None:
    assert ratios(record, [4.0, 2.0]) == Spread(4.0, 2.0, 6.0)
    shares = limit_shares(record, record.ways["st-float32"])
    assert (shares.lowest, shares.highest) == pytest.approx((1000 / 8 / 400, 1000 / 12 / 250))
    assert record.ways.keys() == WAYS.keys()


def test_a_quick_run_on_a_gpu_is_labelled_as_both_and_has_no_operators(record: ThroughputRecord) -> None:
    on_gpu = replace(record, device="cuda:0", operator_seconds={}, is_quick=True)
    assert on_gpu.name.endswith("-cuda0-threads2-quick")
    assert ", cuda:0, 2 threads, 2 rounds" in throughput_table([on_gpu]) and "a quick run" in throughput_table([on_gpu])
    assert "by operators" not in limit_table([on_gpu]) and "by operators" in limit_table([record])
