"""The rows that a reader loads on opening are those of the catalog, with the names of their columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from engine.store.catalog import CATALOG_FILE, GenerationRow, MetaRow, ShardRow, connect
from engine.store.opened import OPENED_TABLES, named_rows, newest, read_opened
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus


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
