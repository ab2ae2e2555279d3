from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import retrieval
from benchmarks.buckets import main
from benchmarks.record_file import rebuild
from benchmarks.slices.records import LengthRecord


@pytest.fixture
def measured(folder: Path, tmp_path: Path) -> list[str]:
    """Options of a folder whose retrieval records are there."""
    records = tmp_path / "records"
    CliRunner().invoke(
        retrieval.main, [str(folder), "--systems", "bm25", "--out", str(records)], catch_exceptions=False
    )
    return [str(folder), "--records", str(records), "--out", str(tmp_path / "out")]


def test_records_and_plots_are_written_by_both_lengths(measured: list[str], tmp_path: Path) -> None:
    options = ["--buckets", "2", "--plot-out", str(tmp_path / "plots")]
    done = CliRunner().invoke(main, [*measured, *options], catch_exceptions=False)
    assert "| pets, length of the query | words (queries) | 12 to 12 (2) |" in done.output
    by_targets = json.loads((tmp_path / "out" / "lengths-pets-targets-words-test.json").read_text())
    assert (by_targets.pop("kind"), by_targets["median"]) == ("lengths", [11.5, 12.0])
    assert rebuild(LengthRecord, by_targets).mean == [[1.0, 1.0]]
    names = [f"lengths-pets-{by}-words-test.{kind}" for by in ("query", "targets") for kind in ("png", "svg")]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == names


def test_lengths_may_be_tokens_of_an_encoder(measured: list[str], bert_folder: Path, tmp_path: Path) -> None:
    CliRunner().invoke(main, [*measured, "--tokens-of", str(bert_folder)], catch_exceptions=False)
    by_query, _ = [json.loads(path.read_text()) for path in sorted((tmp_path / "out").iterdir())]
    assert by_query["unit"].startswith("tokens of bert@")
    assert min(by_query["shortest"]) > 12


def test_a_quick_run_measures_bm25_itself_and_records_nothing(folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [str(folder), "--quick", "--work", str(tmp_path)], catch_exceptions=False)
    assert "| pets_quick, median length of the relevant targets | words (queries) |" in done.output
    assert "|  | bm25 | 1.000 [1.000, 1.000] |" in done.output


def test_a_dataset_without_records_says_how_to_measure_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    done = CliRunner().invoke(main, [str(folder), "--records", str(tmp_path / "records")])
    assert done.exit_code == 1
    assert "records holds no retrieval record of pets@" in done.stderr
    assert "only of nothing; measure it first: python -m benchmarks.retrieval pets --split test --out" in done.stderr
