from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.vectors.collection import Collection, of_index, rows_in_memory, synthetic
from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from tests.benchmarks.vectors.conftest import LAW


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


def test_documents_are_found_again_by_their_numbers(collection: Collection) -> None:
    rows, starts = collection.chunks_of(np.array([7, 0]))
    np.testing.assert_array_equal(rows, np.concatenate([collection.rows[42:48], collection.rows[:6]]))
    np.testing.assert_array_equal(starts, [0, 6])
    assert [len(chunks) for chunks in collection.query_documents()] == [6] * 4


def test_a_collection_survives_its_files(collection: Collection, tmp_path: Path) -> None:
    collection.save(tmp_path)
    again = Collection.load(tmp_path)
    assert isinstance(again.rows.base, np.memmap)  # read where they are needed, as those of a shard
    np.testing.assert_array_equal(rows_in_memory(tmp_path), collection.rows.astype(np.float32))
    np.testing.assert_array_equal(again.rows, collection.rows)
    np.testing.assert_array_equal(again.query_starts, collection.query_starts)


def test_documents_of_an_index_are_asked_for_others(built_folder: Path) -> None:
    found = of_index(built_folder, n_queries=5, seed=0)
    assert (found.n_documents, len(found.query_starts)) == (55, 5)
    with Index.open(built_folder) as index:
        own = [index.chunk_vectors(doc_id) for doc_id in index.snapshot.doc_ids()]
    kept = [found.chunks_of(np.array([number]))[0].tobytes() for number in range(55)]
    asked = [chunks.tobytes() for chunks in found.query_documents()]
    assert sorted(kept + asked) == sorted(chunks.tobytes() for chunks in own)
    assert of_index(built_folder, 5, 0, n_documents=10).n_documents == 10


def test_an_index_that_is_too_small_is_refused(built_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"holds 60 documents, and 60 are to be queries; ask with fewer: --queries N"):
        of_index(built_folder, n_queries=60, seed=0)
    with pytest.raises(IndexMismatch, match="holds no index"):
        of_index(tmp_path / "none.lm", 1, 0)


def test_documents_may_differ_in_length(collection: Collection) -> None:
    uneven = replace(collection, rows=collection.rows[:5], owners=np.array([0, 0, 1, 2, 2]))
    rows, starts = uneven.chunks_of(np.array([2, 1]))
    np.testing.assert_array_equal(rows, collection.rows[[3, 4, 2]])
    np.testing.assert_array_equal(starts, [0, 2])
