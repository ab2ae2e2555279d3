from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sections.faithfulness_report import draw_faithfulness, faithfulness_table
from benchmarks.sections.records import Arm, FaithfulnessRecord
from indexer.training.origin import Origin

MEASURES = (
    *("deletion_area", "insertion_area", "comprehensiveness", "sufficiency"),
    *("deletion_rank_area", "insertion_rank_area"),
)


def arm(order: str, value: float) -> Arm:
    curves = {name: [1.0, value, 0.0] for name in ("deletion", "insertion", "deletion_rank", "insertion_rank")}
    values = {name: [round(value + 0.1 * number, 1) for number in range(5)] for name in MEASURES}
    return Arm("stored", "query", order, list("abcde"), curves, values)


@pytest.fixture
def record(origin: Origin) -> FaithfulnessRecord:
    arms = [arm("breakdown", 0.1), arm("cosine", 0.1), arm("random", 0.5)]
    shares = {"stored": [0.0, 0.5, 1.0]}
    return FaithfulnessRecord(
        "rfc", "rfc@0", "test", "mean@0f", {"unit": "chunk"}, False, 9, 5, shares, arms, 1.0, origin
    )


def test_a_row_has_the_area_between_two_curves_and_its_test(record: FaithfulnessRecord) -> None:
    row = next(line for line in faithfulness_table([record]).splitlines() if "deletion, area (low)" in line)
    # Of 32 sign patterns two are as extreme, and Holm takes the smallest of six p-values six times.
    assert row == (
        "| rfc | mean | query, stored (5) | deletion, area (low) | 0.300 | 0.300 | 0.700 "
        "| -0.400 [-0.400, -0.400] | 0.375 | +0.000 [+0.000, +0.000] | 1.000 |"
    )


def test_every_method_side_and_measure_has_a_row(record: FaithfulnessRecord) -> None:
    lines = faithfulness_table([record]).splitlines()
    assert sum(line.startswith("| rfc |") for line in lines) == 6
    assert lines[-1] == "Measured: commit 0123456789 on A Processor, 2 cores, 24 GiB."


def test_deletion_and_insertion_are_drawn(record: FaithfulnessRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert sorted(path.name for path in draw_faithfulness(record, tmp_path)) == [
        "faithfulness-rfc-mean-test-chunk-stored-query-deletion.png",
        "faithfulness-rfc-mean-test-chunk-stored-query-deletion.svg",
        "faithfulness-rfc-mean-test-chunk-stored-query-insertion.png",
        "faithfulness-rfc-mean-test-chunk-stored-query-insertion.svg",
    ]
