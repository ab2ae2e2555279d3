"""`longmatch export`, and results as references and columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import longmatch
from tests.commands import run, succeed

pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.mark.parametrize("what", ["documents", "sections"])
def test_the_file_is_the_table_of_the_index(words_folder: Path, tmp_path: Path, what: str) -> None:
    for name, read in (
        ("x.parquet", pq.read_table),
        ("x.arrow", feather.read_table),
        ("x.feather", feather.read_table),
    ):
        succeed("export", words_folder, "--what", what, "-o", tmp_path / name)
        with longmatch.open(words_folder) as index:
            assert read(tmp_path / name).equals(index.to_arrow(what))  # type: ignore[arg-type]


def test_vectors_of_filtered_documents_are_exported(built_folder: Path, tmp_path: Path) -> None:
    result = succeed(
        "export", built_folder, "--what", "vectors", "--where", "year = 2003", "-o", tmp_path / "x.parquet"
    )
    table = pq.read_table(tmp_path / "x.parquet")
    assert set(table.column("doc_id").to_pylist()) == {"doc003", "doc028", "doc053"}
    assert result.stderr == f"{table.num_rows:,} rows, 3 documents\n"


def test_failed_exports_keep_the_old_file(words_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").write_text("old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.report.arrow.Export.write", full)
    result = run("export", words_folder, "-o", tmp_path / "x.parquet")
    assert result.exit_code == 1 and "could not be written (No space left on device)" in result.stderr
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_parts_of_results_are_columns(words_folder: Path, tmp_path: Path) -> None:
    query = ["query", words_folder, "--id", "doc003", "--id", "doc004", "-k", "2", "--sections", "1"]
    for form, read in (("parquet", pq.read_table), ("arrow", feather.read_table)):
        succeed(*query, "--format", form, "-o", tmp_path / "x")
        rows = read(tmp_path / "x").to_pylist()
        assert {row["query_id"] for row in rows} == {"doc003", "doc004"}
        assert {row["kind"] for row in rows} == {"section_pair", "rest"}


def test_hits_are_printed_as_bibtex_and_ris(words_folder: Path) -> None:
    query = ["query", words_folder, "--id", "doc003", "-k", "2", "--format"]
    text = run(*query, "bibtex").stdout
    assert text.count("@misc{doc") == 2 and "  year = {" in text
    assert run(*query, "ris").stdout_bytes.count(b"ER  - \r\n") == 2
