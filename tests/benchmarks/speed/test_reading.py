from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.speed.reading import ReadingRecord, ReadingRow, copies, main, reading_table, texts
from indexer.origin import describe_origin


@pytest.mark.slow
def test_files_are_repeated_in_turn(tmp_path: Path) -> None:
    made = sorted(copies(tmp_path / "a", 80).iterdir())
    assert len(made) == 80
    assert made[0].read_bytes() == made[70].read_bytes() != made[1].read_bytes()
    assert {file.suffix for file in texts(tmp_path / "b", 3).iterdir()} == {".txt"}


def test_the_cost_is_that_of_medians_with_and_without_the_start() -> None:
    row = ReadingRow("a", 500, 2_000_000, [2.0, 1.0, 4.0], [2.2, 1.3, 4.0], [0.1, 0.1, 0.3])
    table = reading_table([ReadingRecord([row], False, describe_origin("python -m benchmarks study reading", 0))])
    assert table.splitlines()[2] == "| a | 500 | 2.0 | 2.00 | 2.20 | +10.0% [+0.0%, +30.0%] | 0.10 | +5.0% |"
    assert "median of 3 rounds" in table


@pytest.mark.slow
def test_a_quick_run_writes_a_record(tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["--quick", "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    [record] = read_records(tmp_path)
    assert isinstance(record, ReadingRecord) and record.name == "reading-quick"
    assert [(row.corpus, row.n_files) for row in record.rows] == [("demo corpus", 8), ("plain text", 8)]
    assert all(row.here[0] > 0 and 0 < row.start[0] < row.apart[0] + 0.1 for row in record.rows)
