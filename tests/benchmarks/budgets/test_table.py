from __future__ import annotations

from pathlib import Path

from benchmarks.budgets.record import Kept, PlanRecord
from benchmarks.record_file import write_record
from benchmarks.records import read_records
from benchmarks.report import drawn
from indexer.training.origin import Origin


def _record(origin: Origin) -> PlanRecord:
    rounds = [Kept(100.0, seconds, 400_000_000, 380_000_000, 8_000_000, 8_400_000, 12.5) for seconds in (90, 110, 120)]
    return PlanRecord("pets@0", False, 300, 1_000_000, "longmatch-minilm", 600_000_000, "Flat", rounds, origin)


def test_a_row_shows_medians_and_the_range_of_ratios(origin: Origin) -> None:
    row = drawn("<!-- results:plans -->\n<!-- /results -->", [_record(origin)]).splitlines()[3]
    assert row == (
        "| pets | 300 | 1,000,000 | 600 | Flat | 3 | 100.0 / 110.0 | 1.10 (0.90 to 1.20) "
        "| 400.0 / 380.0 | 0.95 (0.95 to 0.95) | 8.0 / 8.4 | 1.05 (1.05 to 1.05) | 12.5 |"
    )


def test_a_record_is_read_as_it_was_written(tmp_path: Path, origin: Origin) -> None:
    write_record(_record(origin), tmp_path)
    assert read_records(tmp_path) == [_record(origin)]
    assert (tmp_path / "plan-pets-300-memory600m.json").exists()
