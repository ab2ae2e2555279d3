"""Plans of partitions follow from the plan of one index and from measured searches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.errors import QueryError
from engine.store.ann import index_bytes
from indexer.cli import main
from indexer.plan.partition_points import ONCE_MS, POINTS, PROCESS_BYTES, QUERY_BYTES, Point
from indexer.plan.partitioned import Basis, Machine, PartitionPlan, plan_partitions, query_ms, ranking_ms
from indexer.plan.rates import Rates
from indexer.plan.values import Disk, Memory, Plan, Seconds

SHARDS = 160_000_000
ONE = Plan(
    n_new=10_000,
    n_changed=0,
    n_unchanged=0,
    n_unreadable=0,
    n_chars=0,
    n_tokens=0,
    n_chunks=200_000,
    n_chunks_after=200_000,
    is_counted=False,
    factory="IVF1024,PQ192x4fs",
    seconds=Seconds(reading=10, encoding=380, storing=10, generation=60),
    memory=Memory(),
    mapped_bytes=0,
    vram=None,
    disk=Disk(catalog=8_000_000, shards=SHARDS, reference=1_000_000),
    ladder=(),
    ways=(),
)
RATES = Rates(1e9, 1e8)
MACHINE = Machine(cores=4, memory_bytes=8_000_000_000)
MEASURED = (Point(1_000, 2.0, "a"), Point(100_000, 20.0, "a"))


def made(n_partitions: int, n_machines: int | None = None, n_documents: int | None = None) -> PartitionPlan:
    return plan_partitions(
        ONE, 384, RATES, n_partitions, MACHINE, n_machines=n_machines, n_documents=n_documents, points=MEASURED
    )


def test_the_time_to_rank_is_interpolated_between_points_and_proportional_beyond() -> None:
    assert ranking_ms(10_000, MEASURED) == pytest.approx(40**0.5)
    assert ranking_ms(10, MEASURED) == pytest.approx(2.0)
    assert ranking_ms(300_000, MEASURED) == pytest.approx(60.0)


def test_partitions_share_the_cores_of_a_machine() -> None:
    assert [query_ms(n, 4, 10.0, 0, 5.0) for n in (1, 4, 5, 16)] == [15.0, 15.0, 25.0, 45.0]
    assert query_ms(4, 4, 10.0, 12_500_000, 5.0) == pytest.approx(15.0 + 2.0 + 100.0)  # two rounds, and 0.1 s of bytes


def test_one_machine_holds_all_partitions() -> None:
    plan = made(4)
    assert (plan.n_machines, plan.n_on_each, plan.factory) == (1, 4, "Flat")
    codes = 4 * index_bytes("Flat", 50_000, 384)
    assert plan.memory_bytes == PROCESS_BYTES + codes
    assert plan.mapped_bytes == SHARDS
    assert plan.disk_bytes == codes + SHARDS + 8_000_000 + 1_000_000
    assert plan.encode_seconds == 400
    assert plan.query_bytes == 0
    assert plan.query_ms == pytest.approx(ONCE_MS + plan.rank_ms)


def test_machines_divide_time_memory_and_disk() -> None:
    plan = made(4, n_machines=4)
    assert plan.encode_seconds == 100
    assert plan.mapped_bytes == SHARDS / 4
    assert plan.publish_seconds == pytest.approx(made(4).publish_seconds / 4)
    assert plan.query_bytes == 4 * QUERY_BYTES


def test_a_billion_chunks_need_machines_by_their_memory() -> None:
    plan = made(100, n_documents=50_000_000)
    assert plan.n_chunks == 1_000_000_000
    assert 80 < plan.n_machines <= 100
    assert plan.basis is Basis.BEYOND
    assert plan.rank_ms == pytest.approx(2_000.0)
    assert not made(2, n_documents=50_000_000).are_shards_in_memory
    with pytest.raises(QueryError, match="1,000,000,020 chunks; plans reach to 1,000,000,000"):
        made(100, n_documents=50_000_001)


def test_the_basis_of_a_figure_is_named() -> None:
    assert made(2).basis is Basis.RECORD  # of 100,000 chunks
    assert made(3).basis is Basis.BETWEEN


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(QueryError, match="0 partitions; there can be 1 to 4,096"):
        made(0)
    with pytest.raises(QueryError, match="5 machines for 4 partitions; name from 1 to 4"):
        made(4, n_machines=5)


def test_the_measured_points_are_sorted_by_size() -> None:
    sizes = [point.n_chunks for point in POINTS]
    assert sizes == sorted(set(sizes)) and len(sizes) > 3
    assert min(ONCE_MS, QUERY_BYTES, PROCESS_BYTES) > 0
    plan = plan_partitions(replace(ONE, n_chunks_after=sizes[-1]), 384, RATES, 1, MACHINE)
    assert plan.query_ms == pytest.approx(ONCE_MS + POINTS[-1].rank_ms)


@pytest.mark.slow
def test_plan_prints_what_is_measured_and_what_is_computed(tmp_path: Path, bert_folder: Path) -> None:
    (tmp_path / "papers").mkdir()
    for number in range(4):
        (tmp_path / "papers" / f"{number}.md").write_text(f"# Title\n\nA river runs by house {number}.\n")

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, ["plan", str(tmp_path / "papers"), "--encoder", str(bert_folder), *words])
        return done.output

    printed = run("-p", "2", "--documents", "4000")
    assert "partitions       2, about 4,000 documents in " in printed
    assert "measured here on the sample" in printed and "computed" in printed
    assert POINTS[0].record in printed
    assert json.loads(run("-p", "2", "--json"))["partitions"]["n_partitions"] == 2
    assert "add --partitions N" in run("--documents", "4000")
