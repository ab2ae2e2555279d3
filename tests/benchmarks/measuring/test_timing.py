from __future__ import annotations

import os
from collections.abc import Iterator

import faiss
import pytest
import torch
from threadpoolctl import threadpool_info

from benchmarks.isolation import Percentiles, limited_threads, percentiles
from engine.encoders.backbone import hardware


@pytest.fixture(autouse=True)
def restored_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LANCE_CPU_THREADS", "9")
    monkeypatch.setenv("RAYON_NUM_THREADS", "9")
    threads = torch.get_num_threads(), faiss.omp_get_max_threads()
    multiplied = faiss.cvar.distance_compute_blas_threshold, torch.get_float32_matmul_precision()
    yield
    faiss.cvar.distance_compute_blas_threshold = multiplied[0]
    torch.set_float32_matmul_precision(multiplied[1])
    torch.set_num_threads(threads[0])
    faiss.omp_set_num_threads(threads[1])


def test_every_library_gets_the_given_number_of_threads() -> None:
    with limited_threads(1, width=16):
        assert (torch.get_num_threads(), faiss.omp_get_max_threads()) == (1, 1)
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    with limited_threads(2, width=16):
        assert (torch.get_num_threads(), faiss.omp_get_max_threads()) == (2, 2)
        assert os.environ["LANCE_CPU_THREADS"] == os.environ["RAYON_NUM_THREADS"] == "2"


def test_every_library_multiplies_matrices_as_our_own_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_stays_float32", lambda: True)
    faiss.cvar.distance_compute_blas_threshold = 128_000
    torch.set_float32_matmul_precision("highest")
    with limited_threads(1, width=16):
        assert faiss.cvar.distance_compute_blas_threshold == 3 * 16
        assert torch.get_float32_matmul_precision() == "medium"


def test_percentiles_lie_between_neighbours() -> None:
    assert percentiles([float(number) for number in range(101)]) == Percentiles(50.0, 95.0, 99.0)
    assert percentiles([2.0, 1.0]) == Percentiles(1.5, 1.95, 1.99)
    assert percentiles([3.0]) == Percentiles(3.0, 3.0, 3.0)
