from __future__ import annotations

import numpy as np
import torch

from benchmarks.baselines.dssm import Dssm, DssmConfig, dssm
from benchmarks.baselines.letter_trigrams import TrigramCounts
from benchmarks.baselines.pair_model import n_parameters
from tests.benchmarks.baselines.pair_cases import OVERFITTING, fitted, share_right, topical_pairs, turned

DOCUMENTS = [
    TrigramCounts(np.array([0, 3, 7]), np.array([0.5, 1.0, 2.0], np.float32)),
    TrigramCounts(np.array([], np.int64), np.array([], np.float32)),
    TrigramCounts(np.array([1]), np.array([3.0], np.float32)),
]


def test_the_vector_is_that_of_the_equation() -> None:
    torch.manual_seed(0)
    model = Dssm(DssmConfig((6, 5, 4)), 9)
    first, second = (layer for layer in model.layers)
    for document, row in zip(DOCUMENTS, model.encode(DOCUMENTS), strict=True):
        counts = torch.zeros(9)
        counts[document.ids] = torch.from_numpy(document.weights)
        hidden = torch.tanh(model.columns.weight.T @ counts + model.bias)
        expected = torch.tanh(second(torch.tanh(first(hidden))))
        torch.testing.assert_close(row, expected)


def test_it_has_the_layers_of_the_paper() -> None:
    model = Dssm(DssmConfig(), 30_000)
    dense = (30_000 * 300 + 300) + (300 * 300 + 300) + (300 * 128 + 128)
    assert n_parameters(model) == dense + 2  # scale and offset of the cosine
    assert model.encode(DOCUMENTS).shape == (3, 128)


def test_it_learns_pairs_by_heart_and_does_not_mind_their_order() -> None:
    scorer, pairs = fitted(dssm(DssmConfig((32, 16), 500, 1), OVERFITTING)), topical_pairs()
    assert share_right(scorer, pairs) == 1
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
