"""`longmatch pairs` writes CSV and Parquet, and continues a run that was killed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import indexer.pairs as run_module
import longmatch
from engine.store.snapshot import Positions
from tests.commands import run, succeed
from tests.fakes import make_corpus, make_document

CORPUS = make_corpus(30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs") / "x.lm"
    copies = [make_document(f"copy {n}", CORPUS[n].text, title=f"=copy of {n}") for n in (7, 21)]
    longmatch.build(made, [*CORPUS, *copies], encode="none", progress=False).close()
    return made


def test_pairs_and_clusters_are_csv(folder: Path, tmp_path: Path) -> None:
    result = succeed("pairs", folder, "--least", "0.8", "--clusters", tmp_path / "clusters.csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["first"], row["second"], row["first_title"]) for row in rows] == [
        ("copy 21", "doc021", "'=copy of 21"),
        ("copy 7", "doc007", "'=copy of 7"),
    ]
    assert all(float(row["score"]) == max(float(row["forward"]), float(row["backward"])) > 0.9 for row in rows)
    assert "2 pairs among 32 documents, certified, by words alone; 2 clusters of 4 documents" in result.stderr
    clusters = list(csv.DictReader(io.StringIO((tmp_path / "clusters.csv").read_text())))
    assert [(row["cluster"], row["size"], row["doc_id"]) for row in clusters] == [
        ("1", "2", "copy 21"),
        ("1", "2", "doc021"),
        ("2", "2", "copy 7"),
        ("2", "2", "doc007"),
    ]


def test_a_killed_run_continues_by_its_command(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "BLOCK_DOCUMENTS", 8)
    expected = run("pairs", folder, "--least", "0.3").stdout
    plain, calls = run_module._Pass.best, []

    def killed(pairs: run_module._Pass, sources: Positions) -> run_module.Edges:
        calls.append(sources)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(pairs, sources)

    output = tmp_path / "pairs.csv"
    monkeypatch.setattr(run_module._Pass, "best", killed)
    interrupted = run("pairs", folder, "--least", "0.3", "-o", output)
    assert interrupted.exit_code == 1 and "run the same command to continue" in interrupted.stderr
    assert not output.exists() and (tmp_path / "pairs.csv.part").exists()
    monkeypatch.setattr(run_module._Pass, "best", plain)
    again = succeed("pairs", folder, "--least", "0.3", "-o", output)
    assert "continuing after 2 blocks" in again.stderr
    assert output.read_text() == expected
    assert not (tmp_path / "pairs.csv.part").exists()


def test_parquet_holds_the_same_rows_and_of_no_pairs_the_columns(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    succeed("pairs", folder, "--least", "0.3", "--mode", "containment", "-o", tmp_path / "pairs.parquet")
    table = parquet.read_table(tmp_path / "pairs.parquet")
    with longmatch.open(folder) as index:
        pairs = index.pairs(least=0.3, mode="containment")
    assert [tuple(row.values()) for row in table.to_pylist()] == pairs.rows()
    assert table.schema.metadata[b"mode"] == b"containment"
    run("pairs", folder, "--where", "year = 2003", "-o", tmp_path / "pairs.parquet")
    table = parquet.read_table(tmp_path / "pairs.parquet")
    assert table.num_rows == 0 and table.column_names[:3] == ["first", "second", "score"]


def test_pairs_are_a_table_of_pandas(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    with longmatch.open(folder) as index:
        pairs = index.pairs(least=0.8)
    frame = pairs.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "first"] == "copy 21" and frame["score"].dtype == "float64"
    assert repr(pairs) == "Pairs(2 pairs of 32 documents, score at least 0.8)"
