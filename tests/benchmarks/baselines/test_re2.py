from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, pad

from benchmarks.baselines.pair_model import n_parameters
from benchmarks.baselines.re2 import Re2, Re2Config, re2
from tests.benchmarks.baselines.pair_cases import (
    OVERFITTING,
    TINY_WORDS,
    fitted,
    random_table,
    random_words,
    share_right,
    topical_pairs,
)

SMALL = Re2Config(TINY_WORDS, blocks=3, width=6, dropout=0.0)


def activated(layer: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    return gelu(linear(rows, layer, bias), approximate="tanh")


def score_by_hand(model: Re2, one: Tensor, other: Tensor) -> Tensor:
    """The equations over a single pair of ids, without padding: the logit."""
    words = [model.embedding(one), model.embedding(other)]
    rows, residual = words, words
    for number, block in enumerate(model.blocks):
        if number == 1:
            residual = rows
        if number > 1:
            residual = [(now + before) / math.sqrt(2) for now, before in zip(rows, residual, strict=True)]
        if number:
            rows = [torch.cat([left, word], -1) for left, word in zip(residual, words, strict=True)]
        seen = []
        for text in rows:
            context = text
            for layer, _ in block.convolutions:
                beyond = pad(context, (0, 0, 1, 1))
                windows = torch.cat([beyond[:-2], beyond[1:-1], beyond[2:]], -1)
                context = activated(layer.weight.permute(0, 2, 1).flatten(1), windows, layer.bias)
            seen.append(torch.cat([text, context], -1))
        a, b = seen
        similar = block.projection(a) @ block.projection(b).T * block.temperature
        pairs = [(a, similar.softmax(1) @ b), (b, similar.T.softmax(1) @ a)]
        rows = []
        for z, aligned in pairs:
            beside = [aligned, z - aligned, z * aligned]
            parts = [layer(torch.cat([z, x], -1)) for layer, x in zip(block.fusions, beside, strict=True)]
            rows.append(block.fused(torch.cat(parts, -1)))
    v1, v2 = (text.amax(0) for text in rows)
    classes = model.classes(model.hidden(torch.cat([v1, v2, v1 * v2, v1 - v2])))
    return classes[1] - classes[0]  # type: ignore[no-any-return]


def test_logits_equal_the_equations_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Re2(SMALL, random_table(width=5)).eval()
    first = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 20))]
    second = [random_words(seed, n_words=length) for seed, length in enumerate((14, 3, 7), start=9)]
    expected = [
        score_by_hand(model, torch.from_numpy(one.ids), torch.from_numpy(other.ids))
        for one, other in zip(first, second, strict=True)
    ]
    torch.testing.assert_close(model(first, second), torch.stack(expected), atol=1e-5, rtol=1e-5)


def test_re2_has_as_many_parameters_as_published() -> None:
    model = Re2(Re2Config(blocks=3), random_table(width=300).requires_grad_(False))
    assert n_parameters(model) / 1e6 == pytest.approx(2.8, abs=0.05)  # the paper's table of SNLI


@pytest.mark.slow
def test_re2_fits_its_training_pairs() -> None:
    config = Re2Config(TINY_WORDS, width=16, dropout=0.0)
    assert share_right(fitted(re2(config, OVERFITTING), steps=40), topical_pairs()) == 1
