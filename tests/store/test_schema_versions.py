"""An index of every schema that was released is opened, searched, and brought up to date without encoding.

`tests/data/schema-N.tar.xz` holds six documents of `make_corpus`, with vectors of `FakeEncoder` and a Flat index,
written by the last commit of that schema. A new schema gets a file of its own; those that are there never change.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from engine.errors import IndexMismatch
from engine.index import Index
from engine.store.catalog import CATALOG_FILE, READABLE_VERSIONS, SCHEMA_VERSION, connect
from engine.store.presence import stored_meta
from engine.store.seal import write_seal
from indexer.building.builder import build
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_corpus

DATA = Path(__file__).resolve().parents[1] / "data"
_CORPUS = make_corpus(6)


@pytest.fixture(params=READABLE_VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def folder(version: int, tmp_path: Path) -> Path:
    with tarfile.open(DATA / f"schema-{version}.tar.xz") as archive:
        archive.extractall(tmp_path / "x.lm", filter="data")
    return tmp_path / "x.lm"


def _hits(folder: Path) -> list[list[tuple[str, float]]]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        results = [index.search_id(document.doc_id, k=6) for document in _CORPUS]
        return [[(hit.doc_id, hit.score) for hit in result.hits] for result in results]


def test_an_index_of_an_earlier_schema_opens(folder: Path, version: int) -> None:
    assert stored_meta(folder)["schema_version"] == version
    assert verify(folder) == []
    with Index.open(folder, encoder=FakeEncoder()) as index:
        found = [document for document, _ in index.snapshot.documents(np.arange(6))]
        assert [one.text for one in found] == [one.text for one in _CORPUS]
        assert [one.sections for one in found] == [one.sections for one in _CORPUS]
    assert all(len(hits) == 5 for hits in _hits(folder))


@pytest.mark.slow
def test_repair_brings_an_index_up_to_date_without_encoding(folder: Path, tmp_path: Path) -> None:
    encoder = FakeEncoder()
    assert repair(folder, encoder=encoder).lost == []
    assert encoder.batches == []
    assert stored_meta(folder)["schema_version"] == SCHEMA_VERSION
    assert verify(folder) == []
    build(tmp_path / "new.lm", _CORPUS, encoder=FakeEncoder(), factory="Flat")
    assert _hits(folder) == _hits(tmp_path / "new.lm")


def test_a_newer_schema_is_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "new.lm"
    build(folder, _CORPUS[:2], encoder=FakeEncoder())
    engine = connect(folder / CATALOG_FILE, read_only=False)
    with engine.begin() as connection:
        connection.execute(text("UPDATE meta SET value = '99' WHERE key = 'schema_version'"))
    engine.dispose()
    write_seal(folder / CATALOG_FILE)
    expected = f"has schema version 99, this program reads 1 to {SCHEMA_VERSION}; use the longmatch that"
    with pytest.raises(IndexMismatch, match=expected):
        Index.open(folder, encoder=FakeEncoder())
