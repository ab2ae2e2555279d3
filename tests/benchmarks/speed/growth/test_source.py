from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.growth.source import Source, runs
from engine.errors import IndexMismatch
from engine.index import Index
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.builder import build
from tests.fakes import make_corpus


def test_documents_are_read_with_all_their_vectors(source: Source, real_folder: Path) -> None:
    block = source.read(np.array([200, 3]))
    with Index.open(real_folder) as index:
        first, second = (index.stored_query(name).vectors for name in ("d200", "d3"))
    np.testing.assert_array_equal(block.chunks, np.concatenate([first.chunks, second.chunks]))
    np.testing.assert_array_equal(block.sections, np.concatenate([first.sections, second.sections]))
    np.testing.assert_array_equal(block.documents, [first.document, second.document])
    assert block.n_chunks.tolist() == [len(first.chunks), len(second.chunks)]
    assert block.starts.tolist() == [0, len(first.chunks)]
    assert block.spans[len(first.chunks)].tolist() == [0, 0, 4, 3]


def test_a_part_counts_its_own_documents(source: Source) -> None:
    part = source.part(np.array([5, 7])).part(np.array([1]))
    assert part.names == ["d7"]
    np.testing.assert_array_equal(part.read(np.array([0])).chunks, source.read(np.array([7])).chunks)
    assert part.checksum != source.checksum


def test_an_index_of_words_alone_has_a_checksum(tmp_path: Path) -> None:
    checksums = []
    for number, n_documents in enumerate((3, 3, 4)):
        build(tmp_path / f"{number}.lm", make_corpus(n_documents), encode="none")
        with Snapshot(tmp_path / f"{number}.lm") as snapshot:
            checksums.append(Source(snapshot).checksum)
    assert checksums[0] == checksums[1] != checksums[2]


def test_runs_cover_all_documents_and_end_where_another_block_is_full() -> None:
    assert list(runs(np.array([2, 2, 2, 9, 1, 1]), 4)) == [slice(0, 2), slice(2, 3), slice(3, 5), slice(5, 6)]
    assert list(runs(np.array([5]), 4)) == [slice(0, 1)]
    assert list(runs(np.array([], np.int64), 4)) == []


def test_an_index_without_documents_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "made", "fingerprint": "m", "width": 4})
    with Snapshot(tmp_path / "x.lm") as snapshot, pytest.raises(IndexMismatch, match="no document, at least 1"):
        Source(snapshot)
