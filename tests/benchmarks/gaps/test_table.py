from __future__ import annotations

from benchmarks.gaps.record import BUNDLED, GapRow, GapsRecord
from benchmarks.gaps.table import gaps_table
from indexer.training.origin import Origin

BETTER, SAME = [0.9] * 12, [0.5] * 12


def test_a_row_shows_means_and_tests_against_the_encoder(origin: Origin) -> None:
    rows = [
        GapRow("words alone", {"a": 0, "b": 0}, {"a": SAME, "b": [0.2] * 12}),
        GapRow(BUNDLED, {"a": 0, "b": 0}, {"a": SAME, "b": SAME}),
        GapRow("a map", {"a": 50, "b": 150}, {"a": BETTER, "b": SAME}),
    ]
    labels = {"a": "a@0", "b": "b@0"}
    record = GapsRecord(labels, "fake@0", "valid", {"a": 3, "b": 4}, {"steps": 150}, rows, False, 1.0, origin)
    lines = gaps_table([record]).splitlines()
    assert lines[0] == "| Attempt, valid queries | a (12) | b (12) | Mean |"
    assert lines[2] == "| words alone | 0.500, p 1.000 | 0.200, p < 0.001 | 0.350 |"
    assert lines[3] == f"| {BUNDLED} | 0.500 | 0.500 | 0.500 |"
    assert lines[4] == "| a map | 0.900, p < 0.001 | 0.500, p 1.000 | 0.700 |"
    assert record.name == "word_gaps-fake-valid"
