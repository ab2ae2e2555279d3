"""Opening of the catalog, and its named values."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from engine.errors import IndexDamaged, IndexMismatch, StorageError
from engine.store.catalog import FORMAT, connect, write_meta
from engine.store.checks import read_meta, record_tables


def test_named_values_are_set_and_the_others_left(tmp_path: Path) -> None:
    engine = connect(tmp_path / "catalog.sqlite", read_only=False)
    with engine.begin() as connection:
        write_meta(connection, {"format": FORMAT, "a": 1, "b": {"x": ["é", None]}})
        write_meta(connection, {"a": 2})
        record_tables(connection)
        assert read_meta(connection, "x") == {"format": FORMAT, "a": 2, "b": {"x": ["é", None]}}


@pytest.mark.parametrize("values", [{"format": 2}, {"schema_version": 6}])
def test_another_format_is_refused(tmp_path: Path, values: dict[str, int]) -> None:
    engine = connect(tmp_path / "catalog.sqlite", read_only=False)
    with engine.begin() as connection:
        write_meta(connection, values)
        record_tables(connection)
        with pytest.raises(IndexMismatch) as raised:
            read_meta(connection, "x")
    assert str(raised.value) == (
        f"the index has format {values.get('format', 0)}, this program reads format 1; index the corpus again into a "
        "new folder: longmatch index NEW_FOLDER PATH..."
    )


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    connect(tmp_path / "catalog.sqlite", read_only=False).dispose()
    reader = connect(tmp_path / "catalog.sqlite", read_only=True)
    with reader.connect() as connection, pytest.raises(StorageError, match="readonly"):
        write_meta(connection, {"a": 1})


def test_a_reader_makes_no_catalog(tmp_path: Path) -> None:
    reader = connect(tmp_path / "catalog.sqlite", read_only=True)
    with pytest.raises(IndexDamaged, match="is missing"), reader.connect() as connection:
        read_meta(connection, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_keeps_seeing_what_it_saw_first(tmp_path: Path) -> None:
    engine = connect(tmp_path / "catalog.sqlite", read_only=False)
    with engine.begin() as connection:
        write_meta(connection, {"format": FORMAT})
        record_tables(connection)
    with connect(tmp_path / "catalog.sqlite", read_only=True).connect() as reader:
        assert read_meta(reader, "x") == {"format": FORMAT}
        with engine.begin() as connection:
            write_meta(connection, {"a": 2})
            record_tables(connection)
        assert read_meta(reader, "x") == {"format": FORMAT}


@pytest.mark.parametrize("name", ["with space.lm", "100%41?x=1#y.lm", "ünï.lm", "a&mode=memory.lm"])
def test_any_folder_name_works(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    path = tmp_path / name / "catalog.sqlite"
    connect(path, read_only=False).dispose()
    with connect(path, read_only=True).connect() as connection:
        assert read_meta(connection, "x") == {}
    assert path.exists()


def test_a_text_without_its_document_is_refused(tmp_path: Path) -> None:
    engine = connect(tmp_path / "catalog.sqlite", read_only=False)
    with engine.begin() as connection, pytest.raises(IndexDamaged, match="FOREIGN KEY"):
        connection.execute(text("INSERT INTO texts VALUES (7, x'00')"))
