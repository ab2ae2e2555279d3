from __future__ import annotations

import numpy as np

from benchmarks.vectors.collection import Collection
from benchmarks.vectors.timing import chunk_latency, document_latency, time_searches
from engine.encoders.encoder import Vectors
from engine.store.ann import Ids
from tests.benchmarks.vectors.scan import Scan


class Watched(Scan):
    """Remembers with how many chunks at once it was asked."""

    def build(self, rows: Vectors) -> None:
        super().build(rows)
        self.asked: list[int] = []

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        self.asked.append(len(queries))
        return super().search(queries, k)


def test_times_are_of_single_chunks_and_of_whole_documents(collection: Collection) -> None:
    index = Watched()
    index.build(collection.rows)
    assert chunk_latency(index, collection, 10).p50_ms > 0
    assert set(index.asked) == {1}
    assert len(index.asked) == 10 + 24  # warm-up, and every query chunk
    index.asked.clear()
    assert document_latency(index, collection, 10).p50_ms > 0
    assert max(index.asked) == 40


def test_a_graph_is_timed_with_documents_where_it_is_asked_with_them(collection: Collection) -> None:
    index = Watched(search_width=64)
    index.build(collection.rows)
    timed = time_searches(index, collection, 10)
    assert timed.document is None and set(index.asked) == {1}
    index.search_width = 512
    assert time_searches(index, collection, 10).document is not None


class Hungry(Scan):
    """Takes 2 MiB for each query chunk while it searches."""

    def search(self, queries: Vectors, k: int) -> tuple[Ids, Vectors]:
        held = np.ones((len(queries), 1 << 18))
        found = super().search(queries, k)
        assert held[-1, -1] == 1
        return found


def test_the_peak_is_that_of_a_search(collection: Collection) -> None:
    index, plain = Hungry(), Scan()
    index.build(collection.rows)
    plain.build(collection.rows)
    grown = time_searches(index, collection, 10).peak_mib - time_searches(plain, collection, 10).peak_mib
    assert 40 < grown < 160  # 80 MiB for a document of 40 chunks
