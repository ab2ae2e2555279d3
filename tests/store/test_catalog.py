"""Opening of the catalog, and its named values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select, text

from engine.errors import IndexDamaged, IndexMismatch, StorageError
from engine.store.catalog import (
    CATALOG_FILE,
    FORMAT,
    OPENED_TABLES,
    GenerationRow,
    MetaRow,
    ShardRow,
    connect,
    named_rows,
    newest,
    read_opened,
    write_meta,
)
from engine.store.checks import read_meta, record_tables
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


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


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened") / "x.lm"
    build(folder, make_corpus(30), encoder=FakeEncoder(), factory="Flat", language="english")
    return folder / CATALOG_FILE


def test_rows_are_those_of_the_catalog(catalog: Path) -> None:
    with connect(catalog, read_only=True).connect() as connection:
        expected = {table: connection.execute(select(table.__table__)).all() for table in OPENED_TABLES}
        stored = read_opened(connection)
    assert len(expected[ShardRow]) == len(expected[GenerationRow]) == 1
    for table in (ShardRow, GenerationRow):
        (row,) = named_rows(stored, table)
        values = dict(expected[table][0]._mapping)
        if table is ShardRow:
            values["part_digests"] = json.dumps(values["part_digests"])  # text until a shard is opened
        assert row._asdict() == values
    assert newest(stored, GenerationRow).is_exact is expected[GenerationRow][0].is_exact
    assert [row.key for row in named_rows(stored, MetaRow)] == sorted(row.key for row in expected[MetaRow])


def test_the_newest_row_has_the_highest_key(catalog: Path) -> None:
    shards = [(2, "b", 1, "", 1, 1, "{}"), (3, "c", 1, "", 1, 1, "{}")]
    found = newest({ShardRow: shards}, ShardRow)
    assert (found.id, found.file) == (3, "c")
