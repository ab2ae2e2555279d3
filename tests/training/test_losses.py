"""Losses over vectors and scores, compared with loops in plain Python."""

from __future__ import annotations

from math import exp, log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders.trainable import MeanEncoder
from engine.training.losses import (
    ScaledCosine,
    bce_of_cosine,
    best_matches,
    chunk_weights,
    contrastive_tension,
    info_nce,
    ranking_loss,
    supervised_contrastive,
)
from tests.fakes import make_document
from tests.training.made import supervised_contrastive_by_hand

SEEDS = st.integers(0, 10_000)


def unit(seed: int, *shape: int) -> Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return normalize(drawn, dim=-1)


def coins(seed: int, *shape: int, share: float = 0.3) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


def info_nce_by_hand(queries: Tensor, targets: Tensor, positives: list[int], tau: float, excluded: Tensor) -> float:
    losses = []
    for i, p in enumerate(positives):
        terms = [exp(float(queries[i] @ targets[j]) / tau) for j in range(len(targets)) if j == p or not excluded[i, j]]
        losses.append(-log(exp(float(queries[i] @ targets[p]) / tau) / sum(terms)))
    return sum(losses) / len(losses)


@given(seed=SEEDS, n_queries=st.integers(1, 5), n_targets=st.integers(1, 7))
def test_info_nce_equals_the_equation(seed: int, n_queries: int, n_targets: int) -> None:
    queries, targets = unit(seed, n_queries, 6), unit(seed + 1, n_targets, 6)
    positives = torch.randint(n_targets, (n_queries,), generator=torch.Generator().manual_seed(seed))
    excluded = coins(seed, n_queries, n_targets)
    found = info_nce(queries, targets, positives, temperature=0.5, excluded=excluded)
    assert found.item() == pytest.approx(info_nce_by_hand(queries, targets, positives.tolist(), 0.5, excluded))


def test_info_nce_of_two_equal_targets_is_the_log_of_two() -> None:
    targets = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert info_nce(targets[:1], targets, torch.tensor([1]), temperature=0.05).item() == pytest.approx(log(2))


@given(seed=SEEDS, n_vectors=st.integers(0, 7), share=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_supervised_contrastive_equals_the_equation(seed: int, n_vectors: int, share: float) -> None:
    vectors = unit(seed, n_vectors, 6).requires_grad_()
    positives, ignored = (
        coins(seed, n_vectors, n_vectors, share=share),
        coins(seed + 1, n_vectors, n_vectors, share=share),
    )
    found = supervised_contrastive(vectors, positives, temperature=0.5, ignored=ignored)
    assert found.item() == pytest.approx(supervised_contrastive_by_hand(vectors.detach(), positives, 0.5, ignored))
    found.backward()
    assert vectors.grad.isfinite().all()


def test_anchors_without_positives_are_skipped() -> None:
    vectors = torch.eye(3)
    positives = torch.tensor([[False, True, False], [True, False, False], [False, False, True]])
    loss = supervised_contrastive(vectors, positives, temperature=1.0)
    assert loss.item() == pytest.approx(log(2))  # one of two orthogonal others is positive; the third has only itself


@pytest.mark.parametrize(("raw", "scale"), [(-1e9, 1.0), (1e9, 50.0)])
def test_the_scale_stays_in_its_range(raw: float, scale: float) -> None:
    layer = ScaledCosine()
    torch.nn.init.constant_(layer.raw_scale, raw)
    assert layer.scale.item() == scale


def test_bce_of_cosine_equals_the_equation_and_its_scale_learns() -> None:
    cosine, labels = torch.tensor([0.9, -0.2, 0.4]), torch.tensor([True, False, True])
    chances = [1 / (1 + exp(-(6 * c + 0.5))) for c in (0.9, -0.2, 0.4)]
    by_hand = -(log(chances[0]) + log(1 - chances[1]) + log(chances[2])) / 3
    assert bce_of_cosine(cosine, labels, 6.0, 0.5).item() == pytest.approx(by_hand)
    layer = ScaledCosine()
    torch.testing.assert_close(layer(torch.tensor([-1.0, 0.5])), torch.tensor([-6.0, 3.0]))
    layer(torch.tensor(1.0)).backward()
    assert layer.bias.grad == 1.0
    assert layer.raw_scale.grad is not None
    assert layer.raw_scale.grad > 0


def ranking_by_hand(scores: Tensor, positives: Tensor, excluded: Tensor, tau: float) -> float:
    losses = []
    for row, positive, left_out in zip(scores.tolist(), positives.tolist(), excluded.tolist(), strict=True):
        places = [t for t in range(len(row)) if not left_out[t]]
        negatives = sum(exp(row[t] / tau) for t in places if not positive[t])
        own = [exp(row[t] / tau) for t in places if positive[t]]
        losses += [-log(up / (up + negatives)) for up in own]
    return sum(losses) / len(losses) if losses else 0.0


@given(seed=SEEDS, share=st.sampled_from([0.0, 0.3, 1.0]), left_out=st.sampled_from([0.0, 0.3, 1.0]))
def test_the_ranking_loss_equals_the_equation(seed: int, share: float, left_out: float) -> None:
    scores = torch.rand(3, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()
    positives, excluded = coins(seed, 3, 6, share=share), coins(seed + 1, 3, 6, share=left_out)
    found = ranking_loss(scores, positives, excluded, temperature=0.3)
    assert found.item() == pytest.approx(ranking_by_hand(scores.detach(), positives, excluded, 0.3))
    found.backward()
    assert scores.grad.isfinite().all()


def test_positives_do_not_push_each_other_down() -> None:
    scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    ranking_loss(scores, torch.tensor([[True, True, False]])).backward()
    assert (scores.grad[0, :2] < 0).all()
    assert scores.grad[0, 2] > 0


def test_contrastive_tension_is_the_cross_entropy_of_dot_products() -> None:
    one, other = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.5, 3.0], [-1.0, 0.5]])
    by_hand = (-log(1 / (1 + exp(-3.0))) - log(1 - 1 / (1 + exp(0.5)))) / 2
    assert contrastive_tension(one, other, torch.tensor([True, False])).item() == pytest.approx(by_hand)


CASES = st.tuples(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6), st.sampled_from([0.0, 0.08, 1.0]))


def unit_rows(seed: int, *shape: int) -> Tensor:
    return normalize(torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7, dim=-1)


def lengths_mask(seed: int, n: int, longest: int) -> Tensor:
    lengths = torch.randint(1, longest + 1, (n,), generator=torch.Generator().manual_seed(seed))
    return torch.arange(longest) < lengths[:, None]


def test_padding_never_wins_and_best_matches_send_gradients_to_the_best_chunk_alone() -> None:
    targets = torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]])  # the second chunk is padding
    assert best_matches(torch.tensor([[[1.0, 0.0]]]), targets, torch.tensor([[True, False]])).item() == -1.0
    queries, targets = unit_rows(0, 2, 3, 4), unit_rows(1, 2, 5, 4).requires_grad_()
    best_matches(queries, targets, torch.ones(2, 5, dtype=torch.bool)).sum().backward()
    by_hand = torch.zeros_like(targets)
    for q in range(2):
        for i in range(3):
            for t in range(2):
                by_hand[t, int((targets[t] @ queries[q, i]).argmax())] += queries[q, i]
    torch.testing.assert_close(targets.grad, by_hand)


def test_a_chunk_weighs_the_root_of_its_tokens_and_padding_nothing(mean_encoder: MeanEncoder) -> None:
    texts = ["fox " * 12 + "dog dog dog dog", "the old house is red"]
    documents = [mean_encoder.segment(make_document("d", text)) for text in texts]
    tokens = [[chunk.n_tokens for chunk in document.chunks] for document in documents]
    torch.testing.assert_close(
        chunk_weights(documents), torch.tensor([[n**0.5 for n in tokens[0]], [tokens[1][0] ** 0.5, 0.0]])
    )
