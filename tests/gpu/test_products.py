"""Products by torch are those of numpy, and the precision that torch was set to stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.gpu.acceleration import TorchProducts
from engine.scoring.similarity import best_matches, products
from tests.gpu_index import drawn_rows

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NEEDS_GPU])]


@pytest.mark.parametrize("device", DEVICES)
def test_products_are_those_of_numpy(device: str) -> None:
    queries, rows = drawn_rows(20, 0), drawn_rows(500, 1)
    before = torch.get_float32_matmul_precision()
    np.testing.assert_allclose(TorchProducts(device)(queries, rows), products(queries, rows), atol=1e-6)
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("device", DEVICES)
def test_matches_are_those_of_numpy(device: str) -> None:
    queries, rows, starts = drawn_rows(20, 0), drawn_rows(500, 1), np.arange(0, 500, 25)
    there, here = (best_matches(queries, rows, starts, np.zeros(20), one) for one in (TorchProducts(device), products))
    assert np.array_equal(there.chunks, here.chunks)
    np.testing.assert_allclose(there.similarities, here.similarities, atol=1e-6)
