from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.vectors import collection as module
from benchmarks.speed.vectors.collection import LIST_LENGTH, Collection, Law, exact, of_index, rows_in_memory, synthetic
from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from tests.benchmarks.speed.vectors.conftest import LAW


def test_synthetic_vectors_are_seeded_unit_rows_in_half_precision(collection: Collection) -> None:
    assert (collection.n_documents, collection.rows.shape, len(collection.queries)) == (60, (360, 16), 24)
    np.testing.assert_allclose(np.linalg.norm(collection.rows.astype(np.float32), axis=1), 1, atol=2e-3)
    assert (collection.rows.dtype, collection.queries.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(collection.queries, collection.queries.astype(np.float16))
    np.testing.assert_array_equal(collection.rows, synthetic(LAW, 4, seed=0).rows)
    assert not np.array_equal(collection.rows, synthetic(LAW, 4, seed=1).rows)


def test_chunks_of_a_document_are_nearer_to_each_other_than_to_others(collection: Collection) -> None:
    rows = collection.rows.astype(np.float32)
    cosines = rows @ rows.T
    is_own = collection.owners[:, None] == collection.owners
    assert cosines[is_own].mean() > cosines[~is_own].mean() + 0.2


def test_a_collection_is_loaded_as_it_was_saved(collection: Collection, tmp_path: Path) -> None:
    collection.save(tmp_path)
    again = Collection.load(tmp_path)
    assert isinstance(again.rows.base, np.memmap)  # read where they are needed, as those of a shard
    np.testing.assert_array_equal(rows_in_memory(tmp_path), collection.rows.astype(np.float32))
    np.testing.assert_array_equal(again.rows, collection.rows)
    np.testing.assert_array_equal(again.query_starts, collection.query_starts)


def test_some_documents_of_an_index_become_the_queries(built_folder: Path) -> None:
    found = of_index(built_folder, n_queries=5, seed=0)
    assert (found.n_documents, len(found.query_starts)) == (55, 5)
    with Index.open(built_folder) as index:
        own = [index.chunk_vectors(doc_id) for doc_id in index.snapshot.doc_ids()]
    kept = [found.chunks_of(np.array([number]))[0].tobytes() for number in range(55)]
    queries = [chunks.tobytes() for chunks in found.query_documents()]
    assert sorted(kept + queries) == sorted(chunks.tobytes() for chunks in own)
    assert of_index(built_folder, 5, 0, n_documents=10).n_documents == 10


def test_an_index_that_is_too_small_is_refused(built_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"holds 60 documents, and 60 are to be queries; ask with fewer: --queries N"):
        of_index(built_folder, n_queries=60, seed=0)
    with pytest.raises(IndexMismatch, match="holds no index"):
        of_index(tmp_path / "none.lm", 1, 0)


def test_the_truth_equals_plain_loops(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_CHUNKS", 40)
    monkeypatch.setattr(module, "_BLOCK_QUERIES", 7)
    found = exact(collection, k=10)
    for query, least in zip(collection.queries, found.least, strict=True):
        assert least == pytest.approx(sorted((query @ row for row in collection.rows), reverse=True)[9], abs=1e-6)
    for chunks, documents in zip(collection.query_documents(), found.documents, strict=True):
        assert documents == ranking_by_hand(collection, chunks)[:10]


def ranking_by_hand(collection: Collection, chunks: np.ndarray) -> list[int]:
    """The equation, one document at a time, each chunk with weight 1."""
    of_documents = [collection.rows[collection.owners == number].astype(np.float32) for number in range(60)]
    best = np.array([[max(chunk @ row for row in rows) for rows in of_documents] for chunk in chunks])  # (I, N)
    theta = np.clip(-np.sort(-best, axis=1)[:, LIST_LENGTH - 1], 0, 1)
    scores = (np.maximum(0, best - theta[:, None]) ** 2).sum(0)
    order = np.lexsort((np.arange(60), -scores))
    return [int(number) for number in order if scores[number] > 0]


def test_more_neighbours_than_rows_are_all_rows(collection: Collection) -> None:
    least = exact(collection, k=1000).least
    np.testing.assert_allclose(least, (collection.queries @ collection.rows.T).min(axis=1), atol=1e-6)


def test_memory_is_that_of_a_block_whatever_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of all 2,000 query chunks and 20,000 chunks has 153 MiB; a block of 500 by 1,000 has 2."""
    monkeypatch.setattr(module, "_BLOCK_CHUNKS", 1000)
    monkeypatch.setattr(module, "_BLOCK_QUERIES", 500)
    wide = synthetic(Law(n_documents=500, n_chunks=40, width=8, n_topics=12), n_queries=50, seed=0)
    tracemalloc.start()
    try:
        exact(wide, k=10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
