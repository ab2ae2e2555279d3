"""The pages as they are committed, compared with the committed records: every table and number on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import read_records
from benchmarks.report import main
from benchmarks.runs import Run


@pytest.mark.slow
def test_every_table_is_that_of_its_records() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.slow
def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [record for record in read_records(RESULTS) if not isinstance(record, Run)]  # those are written by case
    for record in records:
        write_record(record, tmp_path)
    assert read_records(tmp_path) == records
