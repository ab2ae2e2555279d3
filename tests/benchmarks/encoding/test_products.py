from __future__ import annotations

from benchmarks.encoding.flops import LayerSizes
from benchmarks.encoding.products import Shape, encoder_shapes, measure_products


def test_the_linear_layers_of_the_encoder_are_among_the_products() -> None:
    shapes = encoder_shapes(LayerSizes(6, 384, 1536))
    assert [shape.name for shape in shapes] == ["4096x384x384", "4096x384x1536", "4096x1536x384", "2048x2048x2048"]
    assert shapes[1].flops == shapes[2].flops == 2 * 4096 * 384 * 1536


def test_each_precision_multiplies_each_shape() -> None:
    measured = measure_products([Shape(8, 16, 4), Shape(2, 2, 2)], 1, 16)
    assert list(measured) == ["float32 8x16x4", "float32 2x2x2", "bfloat16 8x16x4", "bfloat16 2x2x2"]
    assert all(gflops >= 0 for gflops in measured.values()) and measured["float32 8x16x4"] > 0
