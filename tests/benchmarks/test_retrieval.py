from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.datasets import Dataset, read_qrels, read_queries
from benchmarks.records import BuildCost, RetrievalRecord, read_records
from benchmarks.retrieval import Trial, main, measure
from benchmarks.systems import Evidence, Searchable
from engine.origin import Origin


@pytest.fixture
def trial(dataset: Dataset, origin: Origin) -> Trial:
    qrels = read_qrels(dataset, "test")
    return Trial(dataset, "test", qrels, read_queries(dataset, qrels), 100, origin)


def test_an_index_is_measured_query_by_query(index: Searchable, trial: Trial) -> None:
    record, run = measure(Evidence(index, "mean@0f", exact=True), BuildCost(1.5, 30, 20.0), trial)
    assert [doc_id for doc_id, _ in run["cat"]] == ["kitten", "dog", "rocket"]
    assert [doc_id for doc_id, _ in run["dog"]] == ["kitten", "rocket", "cat"]
    assert record.query_ids == ["dog", "cat"]
    assert record.per_query["nDCG@10"] == [0.5, 1.0]
    assert record.metrics == {"nDCG@10": 0.75, "Recall@10": 1.0, "Recall@100": 1.0, "MRR@10": 0.6667}
    assert (record.name, record.encoder) == ("pets-evidence-mean-test", "mean@0f")


def test_the_command_writes_record_and_run(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "bm25", "--out", str(tmp_path / "out"), "--run-out", str(tmp_path / "runs")]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, RetrievalRecord)
    assert "| pets (2) | bm25 | 1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000 |  |  |" in done.output
    assert record.origin.command == f"python -m benchmarks.retrieval {folder} --systems bm25"
    lines = (tmp_path / "runs" / "pets-bm25-test.trec").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["dog"] * 3 + ["cat"] * 3
    assert lines[3].split()[1:4] == ["Q0", "kitten", "1"]


def test_a_part_of_a_split_is_not_recorded(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "bm25", "--limit", "1", "--out", str(tmp_path / "out")]
    assert "| pets (1) | bm25 |" in CliRunner().invoke(main, [str(folder), *options]).output
    assert read_records(tmp_path / "out") == []


def test_mistakes_are_one_line(folder: Path) -> None:
    def said(*arguments: str) -> str:
        return CliRunner().invoke(main, list(arguments)).stderr.splitlines()[-1]

    assert said(str(folder)).startswith("Error: --encoder is needed for the systems evidence and document")
    assert said(str(folder), "--systems", "bm24").endswith("'bm24' is not one of evidence, document, bm25")
    assert said(str(folder), "--systems", "bm25", "--split", "dev").startswith("Error: dataset pets has no split 'dev'")
