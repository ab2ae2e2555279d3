"""The pages as they are committed, compared with the committed records: every table and number on them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import freshness
from benchmarks.code_digests import digests
from benchmarks.record_file import RESULTS, write_record
from benchmarks.records import read_records
from benchmarks.report import main


@pytest.mark.slow
def test_every_table_is_that_of_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    @cache
    def digest(path: str, root: Path) -> str:
        return digests([path], root)[path]

    def digests_once(paths: Sequence[str], root: Path) -> dict[str, str]:
        return {path: digest(path, root) for path in paths}

    # Hundreds of records measure the same code, which does not change here.
    monkeypatch.setattr(freshness, "digests", digests_once)
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
