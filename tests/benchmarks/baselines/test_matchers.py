from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.baselines.matchers import ArcI, ArcIConfig, Dssm, DssmConfig, arc_i, dssm
from benchmarks.baselines.pair_model import n_parameters
from benchmarks.baselines.text_inputs import DocumentWords, TrigramCounts
from tests.benchmarks.baselines.pair_cases import (
    OVERFITTING,
    TINY_WORDS,
    fitted,
    random_table,
    random_words,
    share_right,
    topical_pairs,
    turned,
)

DOCUMENTS = [
    TrigramCounts(np.array([0, 3, 7]), np.array([0.5, 1.0, 2.0], np.float32)),
    TrigramCounts(np.array([], np.int64), np.array([], np.float32)),
    TrigramCounts(np.array([1]), np.array([3.0], np.float32)),
]


def test_dssm_vectors_equal_the_equation() -> None:
    torch.manual_seed(0)
    model = Dssm(DssmConfig((6, 5, 4)), 9)
    first, second = (layer for layer in model.layers)
    for document, row in zip(DOCUMENTS, model.encode(DOCUMENTS), strict=True):
        counts = torch.zeros(9)
        counts[document.ids] = torch.from_numpy(document.weights)
        hidden = torch.tanh(model.columns.weight.T @ counts + model.bias)
        expected = torch.tanh(second(torch.tanh(first(hidden))))
        torch.testing.assert_close(row, expected)


def test_dssm_has_as_many_parameters_as_in_the_paper() -> None:
    model = Dssm(DssmConfig(), 30_000)
    dense = (30_000 * 300 + 300) + (300 * 300 + 300) + (300 * 128 + 128)
    assert n_parameters(model) == dense + 2  # scale and offset of the cosine
    assert model.encode(DOCUMENTS).shape == (3, 128)


def test_dssm_fits_its_training_pairs_and_scores_them_the_same_in_either_order() -> None:
    scorer, pairs = fitted(dssm(DssmConfig((32, 16), 500, 1), OVERFITTING)), topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)


LENGTHS = (1, 2, 5, 17, 40)


def read_by_hand(model: ArcI, document: DocumentWords) -> Tensor:
    """The equations over one document, position by position."""
    rows = [model.embedding.weight[number] for number in document.ids.tolist()]
    for layer in model.convolutions:
        beyond = torch.zeros_like(rows[0])
        padded = [beyond, *rows, beyond]
        left, middle, right = layer.weight.unbind(-1)
        made = [
            torch.relu(left @ padded[at] + middle @ padded[at + 1] + right @ padded[at + 2] + layer.bias)
            for at in range(len(rows))
        ]
        rows = [torch.stack(made[at : at + 2]).amax(0) for at in range(0, len(made), 2)]
    return torch.stack(rows).amax(0)


def test_arc_i_vectors_equal_the_equation_in_any_batch() -> None:
    torch.manual_seed(0)
    model = ArcI(ArcIConfig(features=6), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate(LENGTHS)]
    expected = torch.stack([read_by_hand(model, document) for document in documents])
    torch.testing.assert_close(model.encode(documents), expected, atol=1e-5, rtol=1e-5)


def test_arc_i_has_three_layers_of_convolutions() -> None:
    model = ArcI(ArcIConfig(), random_table(width=50).requires_grad_(False))
    assert n_parameters(model) == (3 * 50 * 200 + 200) + 2 * (3 * 200 * 200 + 200) + 2
    assert model.encode([random_words(0, n_words=30)]).shape == (1, 200)


@pytest.mark.slow
def test_arc_i_fits_its_training_pairs_and_scores_them_the_same_in_either_order() -> None:
    scorer, pairs = fitted(arc_i(ArcIConfig(TINY_WORDS, layers=2, features=100), OVERFITTING)), topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
