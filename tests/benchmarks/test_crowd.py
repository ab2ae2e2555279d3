from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.crowd import main
from benchmarks.records import read_records
from benchmarks.scaling.record import CrowdRecord
from engine.index import Index
from engine.scoring.evidence import Scoring


@pytest.fixture
def dataset(tmp_path: Path, real_folder: Path) -> Path:
    """Relevant is what the exact search finds first, with a crowd of ten."""
    folder = tmp_path / "papers"
    folder.mkdir()
    rows = ["query_id\tdoc_id\trelevance"]
    with Index.open(real_folder) as index:
        for query in ("d3", "d120"):
            hits = index.search_id(query, k=2, exact=True, scoring=Scoring(crowd=10)).hits
            rows += [f"{query}\t{hit.doc_id}\t1" for hit in hits]
    (folder / "corpus.jsonl.gz").write_bytes(b"")
    (folder / "qrels.tsv").write_text("\n".join(rows))
    (folder / "splits.json").write_text(json.dumps({"valid": ["d3", "d120"], "test": ["d4000"]}))
    return folder


def test_the_real_corpus_is_ranked_as_by_the_exact_search(dataset: Path, real_folder: Path, tmp_path: Path) -> None:
    options = ["--crowds", "10,40", "--growths", "3", "--limit", "2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(dataset), str(real_folder), *options], catch_exceptions=False)
    (record,) = read_records(tmp_path / "out")
    assert isinstance(record, CrowdRecord) and record.is_quick and record.name == "crowd-papers-valid-quick"
    real, grown = record.points
    assert (real.n_documents, grown.n_documents, grown.n_chunks) == (240, 720, 3 * real.n_chunks)
    assert real.among_all == real.among_real and real.among_all["10"] == 1.0
    assert all(grown.among_all[crowd] <= grown.among_real[crowd] for crowd in ("10", "40"))
    assert "| papers valid (2) | 240 |" in done.output


def test_a_quick_run_writes_no_record(
    dataset: Path, real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.crowd.RESULTS", tmp_path / "results")
    done = CliRunner().invoke(main, [str(dataset), str(real_folder), "--quick"], catch_exceptions=False)
    assert (done.exit_code, (tmp_path / "results").exists()) == (0, False)
    assert "| papers valid (2) | 480 |" in done.output


def test_a_query_that_the_index_does_not_hold_is_told(dataset: Path, real_folder: Path) -> None:
    (dataset / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\nd4000\td3\t1\n")
    told = CliRunner().invoke(main, [str(dataset), str(real_folder), "--split", "test", "--quick"])
    assert (told.exit_code, told.stderr.splitlines()[-1]) == (
        1,
        "Error: query 'd4000' of papers is not in the index (1 are not); name the index of that dataset",
    )
