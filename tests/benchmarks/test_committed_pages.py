"""The pages as they are committed, compared with the committed records: every table and number on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import read_records
from benchmarks.report import main


@pytest.mark.slow
def test_every_table_is_that_of_its_records() -> None:
    done = CliRunner().invoke(main, ["--check"])
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.slow
def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    kept, written = tmp_path / "kept", tmp_path / "written"
    kept.mkdir()
    for path in RESULTS.glob("*.json"):  # runs are in folders, and written by case
        shutil.copy(path, kept)
    records = read_records(kept)
    for record in records:
        write_record(record, written)
    assert records and read_records(written) == records
