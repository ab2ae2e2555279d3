"""Locations are the catalog's own columns."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

import numpy as np

from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer


def test_locations_equal_the_rows_of_the_catalog(built_folder: Path) -> None:
    with closing(sqlite3.connect(f"file:{built_folder / 'catalog.sqlite'}?mode=ro", uri=True)) as catalog:
        rows = catalog.execute(
            "SELECT id, shard_id, document_row, section_row, n_sections, chunk_row, first_chunk, n_chunks "
            "FROM documents ORDER BY id"
        ).fetchall()
    with IndexSnapshot(built_folder) as snapshot:
        columns = astuple(snapshot.locations)
    assert np.array(columns).T.tolist() == [list(row) for row in rows]
    assert all(column.dtype == np.int64 and column.flags.c_contiguous for column in columns)


def test_locations_of_no_document_are_empty(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert [column.shape for column in astuple(snapshot.locations)] == [(0,)] * 8
