"""What partitions take is measured, and planned from the other numbers of partitions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.measuring.timing import Percentiles
from benchmarks.partitions.partition_plan import (
    main,
    once_ms,
    partition_plan_table,
    planned,
    process_bytes,
    search,
    split,
)
from benchmarks.partitions.records import PartitionPlanRecord, PlannedRow
from benchmarks.record_file import RESULTS, rebuild
from engine.store.ann import index_bytes
from indexer.building.builder import build
from indexer.origin import Machine, Origin
from indexer.plan.partition_points import ONCE_MS, POINTS, PROCESS_BYTES, QUERY_BYTES
from tests.fakes import make_corpus

ORIGIN = Origin("python -m benchmarks study partition_plan x.lm", "0" * 40, False, 0, Machine("cpu", 2, 24, ""), {})
ONE = PlannedRow(
    1, "Flat", 40_000, 9.0, 50.0, 10**8, Percentiles(30.0, 40.0, 50.0), 25.0, 20.0, 4 * 10**8, 1.0, 1, 2, 3
)
TWO = replace(ONE, n_partitions=2, n_chunks=20_000, rank_ms=10.0)
FOUR = replace(ONE, n_partitions=4, n_chunks=10_000, rank_ms=5.0)
RECORD = PartitionPlanRecord("papers", 900, 40_000, 384, 10, 20, [ONE, TWO, FOUR], 60.0, ORIGIN)


def test_no_row_is_planned_from_itself() -> None:
    assert once_ms(RECORD) == 5.0
    plans = [ms for ms, _ in planned(RECORD)]
    assert plans == pytest.approx([5 + 20, 5 + 10, 5 + 2 * 10])  # beyond, between, and below the other sizes


def test_memory_is_planned_from_one_process_and_the_indexes() -> None:
    of_one = index_bytes("Flat", 40_000, 384)
    assert process_bytes(RECORD) == 4 * 10**8 - of_one
    assert [held for _, held in planned(RECORD)][2] == process_bytes(RECORD) + 4 * index_bytes("Flat", 10_000, 384)


def test_the_table_has_a_row_for_each_number() -> None:
    rows = [line for line in partition_plan_table([RECORD]).splitlines() if line.startswith("| papers")]
    assert rows[1].startswith("| papers | 2 | Flat over 20,000 | 15.0 | 30.0 / 40.0 | 25.0 | 10.0 |")


def test_one_number_alone_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(tmp_path / "x.lm"), "-p", "4"])
    assert done.exit_code == 2 and "-p 4 alone leaves nothing to plan its row from" in done.output


@pytest.mark.slow
def test_a_search_of_partitions_is_measured(tmp_path: Path) -> None:
    build(tmp_path / "one.lm", make_corpus(12), encode="none")
    split(tmp_path / "one.lm", tmp_path / "x.parts", 2)
    names = ["doc001", "doc004", "doc007"]
    one, two = (search(tmp_path / name, names, True) for name in ("one.lm", "x.parts"))
    assert one["found"] == two["found"] == one["exact"] == two["exact"]
    assert len(two["ms"]) == 3
    one, two = one["row"], two["row"]
    assert (two["factory"], two["rank_ms"] > 0) == ("", True)
    assert two["query_bytes"] == pytest.approx(2 * one["query_bytes"], rel=0.01)
    assert two["rank_bytes"] > one["rank_bytes"] and two["shown_bytes"] == one["shown_bytes"]


def test_the_points_of_the_program_are_those_of_the_records() -> None:
    names = dict.fromkeys(point.record for point in POINTS)
    texts = [(RESULTS / f"{name}.json").read_text("utf-8") for name in names]
    records = [rebuild(PartitionPlanRecord, json.loads(text)) for text in texts]
    rows = sorted((row for record in records for row in record.rows), key=lambda row: row.n_chunks)
    assert [(point.n_chunks, point.rank_ms) for point in POINTS] == [(row.n_chunks, row.rank_ms) for row in rows]
    largest = records[-1]
    last = largest.rows[-1]
    assert round((last.query_bytes + last.rank_bytes + last.shown_bytes) / last.n_partitions) == QUERY_BYTES
    assert (round(once_ms(largest), 2), process_bytes(largest)) == (ONCE_MS, PROCESS_BYTES)
