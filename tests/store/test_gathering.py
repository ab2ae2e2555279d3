"""Term counts of documents are gathered from several shards; locations are the catalog's own columns."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from engine.store.gathering import name_key
from engine.store.reference import content_key
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.words.counts import count_documents
from engine.words.segmenter import segmenter_of
from indexer.building.builder import build
from tests.fakes import make_corpus
from tests.store.written import ENCODER


@pytest.mark.parametrize("apart", [False, True])
def test_counts_come_in_the_requested_order(tmp_path: Path, apart: bool) -> None:
    corpus = make_corpus(8)
    build(tmp_path / "x.lm", corpus[:4], encode="none")
    build(tmp_path / "x.lm", corpus[4:], encode="none")
    positions = np.array([6, 1, 3, 4])
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        found = snapshot.words(positions, apart=apart)
        expected = count_documents(segmenter_of(snapshot.language or "none"), [corpus[at] for at in positions])
        places, packed = snapshot.packed_words(positions)
        assert sorted(places.tolist()) == [0, 1, 2, 3]
        assert "_count_ones" not in vars(packed.words)  # lengths need no counts
        assert packed.words.lengths()[np.argsort(places)].tolist() == expected.words.lengths().tolist()
    assert (found.apart is not None) is apart
    for kind in ("words", "pairs"):
        mine, theirs = getattr(found, kind), getattr(expected, kind)
        assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
        assert np.array_equal(mine.lengths(), theirs.lengths())


def test_locations_equal_the_rows_of_the_catalog(built_folder: Path) -> None:
    with closing(sqlite3.connect(f"file:{built_folder / 'catalog.sqlite'}?mode=ro", uri=True)) as catalog:
        rows = catalog.execute(
            "SELECT id, shard_id, document_row, section_row, n_sections, chunk_row, first_chunk, n_chunks, "
            "tokens_total, content_hash, doc_id FROM documents ORDER BY id"
        ).fetchall()
    with IndexSnapshot(built_folder) as snapshot:
        columns = astuple(snapshot.locations)
    rows = [(*row, content_key(content_hash), name_key(doc_id)) for *row, content_hash, doc_id in rows]
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == rows
    assert [column.dtype for column in columns] == [np.int64] * 9 + [np.uint64] * 2
    assert all(column.flags.c_contiguous for column in columns)


def test_locations_of_no_document_are_empty(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert [column.shape for column in astuple(snapshot.locations)] == [(0,)] * 11
