"""A replica in parts finds what one index of all vectors finds."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from engine.encoders.encoder import Vectors
from engine.gpu.acceleration import can_clone, centroids, list_parts, lists_of
from engine.store.ann import Replica
from tests.gpu_index import WIDTH, drawn_rows
from tests.stand_in_gpus import StandInGpus

ROWS = drawn_rows(3000, 1).astype(np.float16).astype(np.float32)
IDS = np.arange(3000) * 5 + 2
QUERIES = drawn_rows(7, 2).astype(np.float16).astype(np.float32)
BLOCKS = [(IDS[first : first + 400], ROWS[first : first + 400]) for first in range(0, 3000, 400)]


def by_hand(k: int) -> tuple[np.ndarray, Vectors]:
    table = QUERIES @ ROWS.T
    order = np.argsort(-table, axis=1)[:, :k]
    return IDS[order], np.take_along_axis(table, order, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("n_gpus", [1, 2])
@pytest.mark.parametrize("code", ["QT_fp16", "QT_8bit"])
def test_lists_keep_their_centroids_and_are_probed_as_requested(n_gpus: int, code: str) -> None:
    cpu = faiss.index_factory(WIDTH, "IVF8,PQ16x4fs", faiss.METRIC_INNER_PRODUCT)
    cpu.train(ROWS)
    around = centroids(lists_of(cpu, WIDTH))
    parts = list_parts(StandInGpus(n_gpus), around, code, ROWS, BLOCKS)
    replica = Replica(parts, nprobe=8, n_lists=8)
    ids, similarities = replica.search(QUERIES, 10)
    assert np.array_equal(ids[:, 0], by_hand(1)[0][:, 0])
    np.testing.assert_allclose(similarities, by_hand(10)[1], atol=5e-3)
    few, _ = replica.search(QUERIES, 2000, nprobe=1)
    nearest = np.argmax(QUERIES @ around.T, axis=1)
    owners = np.argmax(ROWS @ around.T, axis=1)
    for row, own in zip(few, nearest, strict=True):
        assert sorted(row[row >= 0].tolist()) == IDS[owners == own].tolist()


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        ("IVF8,Flat", True),
        ("IVF8,SQ8", True),
        ("IVF8,SQfp16", True),
        ("IVF8,PQ16", True),
        ("IVF8,SQ6", False),
        ("IVF8,PQ16x4", False),
        ("IVF8,PQ16x4fs", False),
        ("IVF8,RaBitQ", False),
        ("IVF8_HNSW8,Flat", False),
    ],
)
def test_only_types_that_a_gpu_can_hold_are_cloned(factory: str, expected: bool) -> None:
    index = faiss.index_factory(WIDTH, factory, faiss.METRIC_INNER_PRODUCT)
    lists = lists_of(index, WIDTH)
    assert lists is not None and can_clone(lists) is expected


@pytest.mark.parametrize("factory", ["Flat", "HNSW8", "RR16,IVF8,Flat", "RR32,IVF8,Flat"])
def test_types_without_lists_of_the_vectors_themselves_have_no_lists(factory: str) -> None:
    assert lists_of(faiss.index_factory(WIDTH, factory, faiss.METRIC_INNER_PRODUCT), WIDTH) is None
