from __future__ import annotations

import pytest

from benchmarks.speed.recall import document_recall, measure, sampled_queries
from engine.errors import QueryError
from engine.index import Index
from indexer.origin import Origin


def test_recall_is_the_share_of_exact_targets_found() -> None:
    found, truth = [["a", "b"], ["c"], [], []], [["b", "z"], ["c"], ["a"], []]
    assert document_recall(found, truth) == [0.5, 1.0, 0.0, 1.0]


def test_an_index_is_compared_with_its_own_exact_search(index: Index, origin: Origin) -> None:
    record = measure(index, "pets", "IVF2,Flat", 1, n_queries=10, k=2, threads=1, origin=origin)
    # The kitten is among the two best of cat, dog and rocket, and approximate search loses it.
    assert (record.n_queries, record.recall, record.lowest_recall) == (4, 0.625, 0.5)
    assert (record.name, record.factory, record.nprobe, record.n_documents) == ("recall-pets", "IVF2,Flat", 1, 4)
    assert 0 <= record.ann.p50_ms <= record.ann.p95_ms <= record.ann.p99_ms


def test_the_sample_is_the_same_for_the_same_seed() -> None:
    names = [f"d{number}" for number in range(50)]
    sample = sampled_queries(names, 20, seed=4)
    assert len(set(sample)) == 20
    assert sampled_queries(names, 20, seed=4) == sample != sampled_queries(names, 20, seed=5)
    assert sorted(sampled_queries(names, 99, seed=4)) == sorted(names)


def test_an_empty_index_is_refused(origin: Origin) -> None:
    class Empty:
        n_documents = n_chunks = 0

        def document_vectors(self) -> tuple[list[str], list[float]]:
            return [], []

    with pytest.raises(QueryError, match="index pets holds 0 documents, at least 1 is needed; build it first"):
        measure(Empty(), "pets", "", 0, n_queries=1, k=1, threads=1, origin=origin)  # type: ignore[arg-type]
