from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from benchmarks.vectors import truth
from benchmarks.vectors.collection import Collection, Law, synthetic
from benchmarks.vectors.truth import LIST_LENGTH, exact


def test_the_truth_equals_plain_loops(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "_BLOCK_CHUNKS", 40)
    monkeypatch.setattr(truth, "_BLOCK_QUERIES", 7)
    found = exact(collection, k=10)
    for query, least in zip(collection.queries, found.least, strict=True):
        assert least == pytest.approx(sorted((query @ row for row in collection.rows), reverse=True)[9], abs=1e-6)
    for chunks, documents in zip(collection.query_documents(), found.documents, strict=True):
        assert documents == ranking_by_hand(collection, chunks)[:10]


def ranking_by_hand(collection: Collection, chunks: np.ndarray) -> list[int]:
    """The equation, one pair of documents at a time, each chunk with weight 1."""
    best = np.array(
        [
            [
                max(chunk @ row.astype(np.float32) for row in collection.rows[collection.owners == number])
                for number in range(60)
            ]
            for chunk in chunks
        ]
    )  # (I, N)
    theta = np.clip(-np.sort(-best, axis=1)[:, LIST_LENGTH - 1], 0, 1)
    scores = (np.maximum(0, best - theta[:, None]) ** 2).sum(0)
    order = np.lexsort((np.arange(60), -scores))
    return [int(number) for number in order if scores[number] > 0]


def test_more_neighbours_than_there_are_are_all(collection: Collection) -> None:
    least = exact(collection, k=1000).least
    np.testing.assert_allclose(least, (collection.queries @ collection.rows.T).min(axis=1), atol=1e-6)


def test_memory_is_that_of_a_block_whatever_the_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of all 2,000 query chunks and 20,000 chunks has 153 MiB; a block of 500 by 1,000 has 2."""
    monkeypatch.setattr(truth, "_BLOCK_CHUNKS", 1000)
    monkeypatch.setattr(truth, "_BLOCK_QUERIES", 500)
    wide = synthetic(Law(n_documents=500, n_chunks=40, width=8, n_topics=12), n_queries=50, seed=0)
    tracemalloc.start()
    try:
        exact(wide, k=10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
