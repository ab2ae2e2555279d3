from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from benchmarks.speed.encode.limits import (
    LayerSizes,
    chunk_flops,
    encoder_shapes,
    group_of,
    group_seconds,
    profile_encoder,
    read_sizes,
)
from benchmarks.speed.encode.ways import Job
from engine.errors import EncoderError


def test_operations_are_those_that_torch_counts(bert_folder: Path) -> None:
    model = AutoModel.from_pretrained(bert_folder, attn_implementation="eager", add_pooling_layer=False)
    lengths = [7, 20, 48]
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        for length in lengths:
            model(input_ids=torch.ones((1, length), dtype=torch.int64))
    assert read_sizes(bert_folder) == LayerSizes(2, 32, 64)
    assert chunk_flops(read_sizes(bert_folder), lengths) == counter.get_total_flops()


def test_minilm_takes_26_million_a_token_at_its_full_length() -> None:
    assert chunk_flops(LayerSizes(6, 384, 1536), [512]) / 512 == pytest.approx(26e6, rel=0.005)


def test_other_layers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "modernbert", "hidden_size": 8}))
    with pytest.raises(EncoderError, match=r"is a 'modernbert', operations are counted for bert, .*; name an encoder"):
        read_sizes(tmp_path)


def test_the_linear_layers_of_the_encoder_are_among_the_products() -> None:
    shapes = encoder_shapes(LayerSizes(6, 384, 1536))
    assert [shape.name for shape in shapes] == ["4096x384x384", "4096x384x1536", "4096x1536x384", "2048x2048x2048"]
    assert shapes[1].flops == shapes[2].flops == 2 * 4096 * 384 * 1536


@pytest.mark.parametrize(
    ("group", "operators"),
    [
        ("linear layers", "aten::addmm aten::mm aten::linear mkldnn::_linear_pointwise"),
        ("attention", "aten::_scaled_dot_product_flash_attention_for_cpu aten::_softmax aten::baddbmm aten::exp2_"),
        ("GELU", "aten::gelu"),
        ("LayerNorm", "aten::native_layer_norm"),
        ("other operators", "aten::add aten::embedding"),
    ],
)
def test_operators_fall_into_groups(group: str, operators: str) -> None:
    assert {group_of(operator) for operator in operators.split()} == {group}


def test_time_that_no_operator_took_counts_as_outside_of_operators() -> None:
    seconds = group_seconds([("aten::addmm", 2.0), ("aten::linear", 1.0), ("aten::add", 0.5)], 4.0)
    assert (seconds["linear layers"], seconds["other operators"], seconds["outside of operators"]) == (3.0, 0.5, 0.5)
    assert seconds["GELU"] == 0 and sum(seconds.values()) == 4


def test_a_profiled_encoder_shows_its_groups(job: Job) -> None:
    seconds = profile_encoder(job, 10)
    assert all(seconds[group] > 0 for group in ("linear layers", "attention", "LayerNorm", "other operators"))
