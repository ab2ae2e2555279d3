from __future__ import annotations

import pytest

from benchmarks.slices.records import PositionRecord
from benchmarks.slices.views import position_table
from indexer.training.origin import Origin


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


def test_tenths_are_columns_and_sides_rows(positions: PositionRecord) -> None:
    rows = position_table([positions]).splitlines()
    beginning = "| pets (3) | mean | 1,234 hits of the first 10 |"
    assert rows[2] == f"{beginning} query | 0.550 |{' 0.050 |' * 9} 0.125 |"
    assert rows[3] == f"{beginning} target |{' 0.100 |' * 10} 0.125 |"
