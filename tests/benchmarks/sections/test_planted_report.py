from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from benchmarks.sections.hosts import LENGTHS
from benchmarks.sections.planted_report import draw_planted, planted_table
from benchmarks.sections.planting import Damage, Position
from benchmarks.sections.records import PlantedRecord
from indexer.training.origin import Origin


@pytest.fixture
def record(origin: Origin) -> PlantedRecord:
    """Three pairs, a length each; the host of `s0` is found and named whatever the damage, the others where copied."""
    plantings: dict[str, list[str | int | float]] = {}
    for (number, length), damage, position in product(enumerate(LENGTHS), Damage, Position):
        is_found = number == 0 or damage is Damage.COPY
        row = {
            "query": f"s{number}",
            "length": length,
            "damage": damage.value,
            "position": position.value,
            "rank": 1 if is_found else 11,
            "document_rank": 20,
            "rank_before": 30,
            "document_rank_before": 40,
            "is_first": int(is_found),
            "iou": 0.5 * is_found,
            "span_precision": 0.75 * is_found,
            "span_recall": 0.6 * is_found,
        }
        for name, value in row.items():
            plantings.setdefault(name, []).append(value)
    words = {"short": [10, 20], "medium": [30, 30], "long": [1000, 2000]}
    settings: dict[str, str | int | float | bool] = {"form": "section"}
    return PlantedRecord("rfc", "rfc@0", "mean@0f", settings, False, 60, 3, 0.5, words, plantings, 1.0, origin)


def cells(record: PlantedRecord, start: str) -> list[str]:
    rows = [line.strip("| ").split(" | ") for line in planted_table([record]).splitlines() if f"| {start}" in line]
    assert len(rows) == 1
    return rows[0]


def test_rows_say_what_was_found_and_named(record: PlantedRecord) -> None:
    row = cells(record, "damage: drop 30 %")
    assert row[:3] == ["rfc (3)", "mean", "damage: drop 30 %"]
    assert row[3:9] == ["0.333", "0.333 [0.000, 1.000]", "11", "0.000", "0.000", "20"]
    assert row[10:] == ["0.333 [0.000, 1.000]", "0.167", "0.250", "0.200"]
    assert cells(record, "length: long, 1,000 to 2,000 words")[3:6] == ["0.200", "0.200 [0.200, 0.200]", "11"]
    assert cells(record, "before planting")[3:9] == ["0.000", "0.000 [0.000, 0.000]", "30", "0.000", "0.000", "40"]


def test_every_group_has_its_rows(record: PlantedRecord) -> None:
    lines = [line for line in planted_table([record]).splitlines() if line.startswith("| rfc (3) |")]
    assert len(lines) == 1 + len(Damage) + len(Position) + len(LENGTHS)


def test_each_group_is_drawn(record: PlantedRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = {path.name for path in draw_planted(record, tmp_path)}
    groups = ("damage", "position", "length")
    assert names == {
        f"planted-rfc-mean-section-60documents-{group}.{suffix}" for group in groups for suffix in ("png", "svg")
    }
