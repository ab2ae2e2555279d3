from __future__ import annotations

import pytest

from benchmarks.gpus.searching import FLAT, K, Trial, measure_flat, measure_lists
from benchmarks.gpus.stand_in import StandInGpus
from benchmarks.gpus.vectors import draw, exact_best
from benchmarks.vectors.collection import Law


@pytest.fixture(scope="module")
def trial() -> Trial:
    drawn = draw(Law(n_documents=120, n_chunks=20, width=32, n_topics=40), 4, "cpu", 0)
    return Trial(drawn, exact_best(drawn, K, "cpu"), StandInGpus(), is_gpu=False, rounds=2, seed=0)


def test_all_vectors_compared_find_everything(trial: Trial) -> None:
    searched = measure_flat(trial, compare=True)
    (point,) = searched.points
    assert (searched.factory, searched.n_vectors, searched.width, searched.n_lists) == (FLAT, 2400, 32, 0)
    assert (searched.n_queries, searched.query_chunks) == (4, 20)
    assert (point.recall, searched.equal_to_cpu) == (1.0, 1.0)
    assert 0 < point.latency.p50_ms <= point.latency.p99_ms


@pytest.mark.parametrize(("code", "least"), [("SQfp16", 1.0), ("SQ8", 0.97)])
def test_more_lists_find_more(trial: Trial, code: str, least: float) -> None:
    searched = measure_lists(trial, code)
    assert searched.factory == f"IVF{searched.n_lists},{code}" and searched.equal_to_cpu is None
    assert [point.nprobe for point in searched.points] == [
        nprobe for nprobe in (8, 16, 32, 64, 128, 256) if nprobe <= searched.n_lists
    ]
    recalls = [point.recall for point in searched.points]
    assert recalls == sorted(recalls) and recalls[0] > 0.5
    assert recalls[-1] >= least
