"""The stand-in for GPUs refuses what GPUs refuse, and searches like them."""

import faiss
import numpy as np
import pytest

from tests.gpu_index import WIDTH, drawn_rows
from tests.stand_in_gpus import StandInGpus


def _lists(n_vectors: int) -> faiss.Index:
    index = faiss.index_factory(WIDTH, "IVF4,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(drawn_rows(200, 0))
    index.add(drawn_rows(n_vectors, 0))
    return index


def test_searches_and_indexes_that_a_gpu_refuses_are_refused() -> None:
    lists = StandInGpus().place(_lists(50), 0)
    query = drawn_rows(1, 1)
    with pytest.raises(RuntimeError, match="k 2049 or nprobe 0 is above 2048"):
        lists.search(query, 2049)
    chosen = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.arange(3)))  # type: ignore[call-arg, arg-type]
    with pytest.raises(RuntimeError, match="a selector is ignored"):
        lists.search(query, 3, params=chosen)
    for factory in ("Flat", "HNSW8", "PQ8", "IVF4,PQ8x4fs"):
        index = faiss.index_factory(WIDTH, factory, faiss.METRIC_INNER_PRODUCT)
        with pytest.raises(RuntimeError, match="is not implemented on GPU"):
            StandInGpus().place(index, 0)


def test_lists_are_placed_with_their_vectors() -> None:
    placed = StandInGpus().place(_lists(50), 0)
    assert placed.ntotal == 50
    assert placed.search(drawn_rows(50, 0)[7:8], 1)[1].tolist() == [[7]]
