from __future__ import annotations

import pytest

from benchmarks.encoding.operators import group_of, group_seconds, profile_encoder, shares
from benchmarks.encoding.ways import Job


@pytest.mark.parametrize(
    ("operator", "group"),
    [
        ("aten::addmm", "linear layers"),
        ("aten::mm", "linear layers"),
        ("aten::linear", "linear layers"),
        ("mkldnn::_linear_pointwise", "linear layers"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten::_softmax", "attention"),
        ("aten::baddbmm", "attention"),
        ("aten::exp2_", "attention"),
        ("aten::gelu", "GELU"),
        ("aten::native_layer_norm", "LayerNorm"),
        ("aten::add", "other operators"),
        ("aten::embedding", "other operators"),
    ],
)
def test_operators_fall_into_groups(operator: str, group: str) -> None:
    assert group_of(operator) == group


def test_what_no_operator_took_is_outside_of_them() -> None:
    seconds = group_seconds([("aten::addmm", 2.0), ("aten::linear", 1.0), ("aten::add", 0.5)], 4.0)
    assert (seconds["linear layers"], seconds["other operators"], seconds["outside of operators"]) == (3.0, 0.5, 0.5)
    assert seconds["GELU"] == 0 and sum(seconds.values()) == 4
    assert shares(seconds)["linear layers"] == 0.75


def test_a_profiled_encoder_shows_its_groups(job: Job) -> None:
    seconds = profile_encoder(job, 10)
    assert all(seconds[group] > 0 for group in ("linear layers", "attention", "LayerNorm", "other operators"))
