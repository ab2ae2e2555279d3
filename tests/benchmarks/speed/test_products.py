from __future__ import annotations

import pytest

from benchmarks.speed.products import Shape, measure_products


@pytest.mark.slow
def test_each_precision_multiplies_each_shape() -> None:
    measured = measure_products([Shape(8, 16, 4), Shape(2, 2, 2)], 1, 16)
    assert list(measured) == ["float32 8x16x4", "float32 2x2x2", "bfloat16 8x16x4", "bfloat16 2x2x2"]
    assert all(gflops >= 0 for gflops in measured.values()) and measured["float32 8x16x4"] > 0
