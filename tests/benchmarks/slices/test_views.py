from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.slices.records import LengthRecord, PositionRecord
from benchmarks.slices.views import length_table, plot_lengths, plot_positions, position_table
from indexer.training.origin import Origin


@pytest.fixture
def lengths(origin: Origin) -> LengthRecord:
    return LengthRecord(
        task="pets",
        dataset="pets@0",
        split="valid",
        metric="nDCG@10",
        by="targets",
        unit="words",
        shortest=[100, 900.5],
        median=[300, 2000],
        longest=[900, 12000],
        n_queries=[3, 2],
        n_left_out=0,
        systems=["bm25", "evidence, mean"],
        mean=[[0.5, 0.25], [0.75, 0.625]],
        low=[[0.4, 0.125], [0.5, 0.6]],
        high=[[0.6, 0.375], [1.0, 0.65]],
        origin=origin,
    )


@pytest.fixture
def positions(origin: Origin) -> PositionRecord:
    early = {"query": [0.55, *[0.05] * 9], "target": [0.1] * 10}
    return PositionRecord(
        task="pets",
        dataset="pets@0",
        system="evidence",
        encoder="mean@0f",
        settings={},
        split="test",
        k=10,
        n_queries={"all": 3},
        n_hits={"all": 1234},
        n_placed={"all": 1234},
        document_share={"all": 0.125},
        mass={"all": early},
        low={"all": early},
        high={"all": early},
        origin=origin,
    )


def test_buckets_are_columns_and_systems_rows(lengths: LengthRecord) -> None:
    assert length_table([lengths]).splitlines()[:5] == [
        "| Task, by | System | Bucket 1 | Bucket 2 |",
        "| --- | --- | --- | --- |",
        "| pets, valid, median length of the relevant targets | words (queries) | 100 to 900 (3) | 900 to 12,000 (2) |",
        "|  | bm25 | 0.500 [0.400, 0.600] | 0.250 [0.125, 0.375] |",
        "|  | evidence, mean | 0.750 [0.500, 1.000] | 0.625 [0.600, 0.650] |",
    ]
    assert length_table([]) == position_table([]) == ""


def test_tenths_are_columns_and_sides_rows(positions: PositionRecord) -> None:
    rows = position_table([positions]).splitlines()
    beginning = "| pets (3) | mean | 1,234 hits of the first 10 |"
    assert rows[2] == f"{beginning} query | 0.550 |{' 0.050 |' * 9} 0.125 |"
    assert rows[3] == f"{beginning} target |{' 0.100 |' * 10} 0.125 |"


def test_what_is_left_out_and_what_has_no_place_is_told(lengths: LengthRecord, positions: PositionRecord) -> None:
    rows = length_table([replace(lengths, n_left_out=7)])
    assert "median length of the relevant targets, without 7 whose targets are all absent | words" in rows
    unplaced = position_table([replace(positions, n_placed={"all": 1200})])
    assert "| 1,234 hits of the first 10, 34 without a place | query |" in unplaced
    assert "- `python -m benchmarks.retrieval pets`" in rows.splitlines()


def test_plots_are_named_by_their_records(lengths: LengthRecord, positions: PositionRecord, tmp_path: Path) -> None:
    drawn = [*plot_lengths(lengths, tmp_path), *(path for pair in plot_positions(positions, tmp_path) for path in pair)]
    names = ["lengths-pets-targets-words-valid"]
    names += [f"positions-pets-evidence-mean-test-{side}" for side in ("query", "target")]
    assert [path.name for path in drawn] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert all(path.stat().st_size > 5_000 for path in drawn)
