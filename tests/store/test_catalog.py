"""Opening of the catalog, and its named values."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import IndexDamaged, IndexMismatch, StorageError
from engine.store.catalog import (
    CATALOG_FILE,
    FORMAT,
    OPENED_TABLES,
    named_rows,
    newest,
    open_catalog,
    read_opened,
    reading,
)
from engine.store.checks import read_meta, record_tables
from engine.store.writable import create_tables, engine_of, write_meta
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


def write(path: Path, values: dict[str, Any]) -> None:
    """Set named values of a catalog, which is made if it is missing."""
    with closing(open_catalog(path, read_only=False)) as connection, engine_of(connection).begin() as writing:
        create_tables(writing)
        write_meta(writing, values)
        record_tables(connection)


def test_named_values_are_set_and_the_others_left(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {"format": FORMAT, "a": 1, "b": {"x": ["é", None]}})
    write(tmp_path / CATALOG_FILE, {"a": 2})
    with reading(tmp_path / CATALOG_FILE) as connection:
        assert read_meta(connection, "x") == {"format": FORMAT, "a": 2, "b": {"x": ["é", None]}}


@pytest.mark.parametrize("values", [{"format": 2}, {"schema_version": 6}])
def test_another_format_is_refused(tmp_path: Path, values: dict[str, int]) -> None:
    write(tmp_path / CATALOG_FILE, values)
    with reading(tmp_path / CATALOG_FILE) as connection, pytest.raises(IndexMismatch) as raised:
        read_meta(connection, "x")
    assert str(raised.value) == (
        f"the index has format {values.get('format', 0)}, this program reads format 1; index the corpus again into a "
        "new folder: longmatch index NEW_FOLDER PATH..."
    )


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {})
    with pytest.raises(StorageError, match="readonly"), reading(tmp_path / CATALOG_FILE) as connection:
        connection.execute("INSERT INTO meta VALUES ('a', '1')")


def test_a_reader_makes_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged, match="is missing"), reading(tmp_path / CATALOG_FILE):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_reader_keeps_seeing_what_it_saw_first(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {"format": FORMAT})
    with reading(tmp_path / CATALOG_FILE) as reader:
        assert read_meta(reader, "x") == {"format": FORMAT}
        write(tmp_path / CATALOG_FILE, {"a": 2})
        assert read_meta(reader, "x") == {"format": FORMAT}


@pytest.mark.parametrize("name", ["with space.lm", "100%41?x=1#y.lm", "ünï.lm", "a&mode=memory.lm"])
def test_any_folder_name_works(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    path = tmp_path / name / CATALOG_FILE
    write(path, {})
    with reading(path) as connection:
        assert read_meta(connection, "x") == {}
    assert path.exists()


def test_a_text_without_its_document_is_refused(tmp_path: Path) -> None:
    write(tmp_path / CATALOG_FILE, {})
    refused = pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY")
    with refused, closing(open_catalog(tmp_path / CATALOG_FILE, read_only=False)) as connection:
        connection.execute("INSERT INTO texts VALUES (7, x'00')")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened") / "x.lm"
    build(folder, make_corpus(30), encoder=FakeEncoder(), factory="Flat", language="english")
    return folder / CATALOG_FILE


def test_rows_are_those_of_the_catalog(catalog: Path) -> None:
    with reading(catalog) as connection:
        stored = read_opened(connection)
        connection.row_factory = sqlite3.Row
        expected = {table: list(map(dict, connection.execute(f"SELECT * FROM {table}"))) for table in OPENED_TABLES}
    assert len(expected["shards"]) == len(expected["generations"]) == 1
    for table in OPENED_TABLES[1:]:
        assert [row._asdict() for row in named_rows(stored, table)] == expected[table]


def test_the_newest_row_has_the_highest_key() -> None:
    shards = [(2, "b", 1, "", 1, 1, "{}"), (3, "c", 1, "", 1, 1, "{}")]
    found = newest({"shards": shards}, "shards")
    assert (found.id, found.file) == (3, "c")
