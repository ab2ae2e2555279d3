from __future__ import annotations

from benchmarks.fuzzing.record import FuzzRecord, FuzzRow
from benchmarks.fuzzing.table import fuzz_table
from indexer.training.origin import Origin


def test_the_table_adds_up_the_formats(origin: Origin) -> None:
    rows = [
        FuzzRow(".pdf", 5, {"read": 2, "over a limit": 3}, 6.25, []),
        FuzzRow(".txt", 1_200, {"read": 1_100, "refused": 99, "process died": 1}, 0.5, ["7: the parser crashed"]),
    ]
    lines = fuzz_table([FuzzRecord(1_205, 5.0, 256 * 2**20, rows, 9.0, origin)]).splitlines()
    assert lines[2] == "| .pdf | 5 | 2 | 0 | 0 | 3 | 0 | 0 | 0 | 6.2 |"
    assert lines[4] == "| all | 1,205 | 1,102 | 99 | 0 | 3 | 1 | 0 | 0 | 6.2 |"
    assert "within 5 s of processor time and 256 MiB" in lines[6]
