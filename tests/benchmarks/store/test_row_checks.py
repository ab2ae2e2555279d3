from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.store.row_checks import compared, without_checks
from benchmarks.synthetic import SHORT, documents
from engine.errors import IndexDamaged
from engine.store.catalog import CATALOG_FILE
from engine.store.seal import break_seal
from engine.store.snapshot import Snapshot
from indexer.building.builder import build


@pytest.fixture
def unsealed(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", documents(SHORT, 12), encode="none", language="english")
    break_seal(tmp_path / "x.lm" / CATALOG_FILE)
    return tmp_path / "x.lm"


def test_opening_and_a_query_are_measured(unsealed: Path) -> None:
    found = compared(unsealed, ["short-000000"], 1)
    assert found.keys() == {"opening", "query"}
    assert all(value > 0 for pair in found.values() for value in pair)


def test_checks_are_really_left_out(unsealed: Path) -> None:
    catalog = unsealed / CATALOG_FILE
    catalog.write_bytes(catalog.read_bytes().replace(b"short-000003.txt", b"short-000003.TXT"))
    with Snapshot(unsealed) as snapshot, pytest.raises(IndexDamaged, match="are not what was written"):
        snapshot.doc_ids()
    with without_checks(), Snapshot(unsealed) as snapshot:
        assert len(snapshot.doc_ids()) == 12
