"""The score with gradients is compared with the score of search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders.mean import MeanEncoder
from engine.scoring import evidence as of_search
from engine.scoring.evidence import Scoring
from engine.training.tasks.evidence import batch_thresholds, best_matches, chunk_weights, evidence_scores, margin
from tests.fakes import make_document

CASES = st.tuples(
    st.integers(0, 10_000),
    st.integers(1, 12),
    st.integers(1, 6),
    st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    st.sampled_from([0.0, 0.08, 1.0]),
)


def unit(seed: int, *shape: int) -> Tensor:
    return normalize(torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7, dim=-1)


def lengths_mask(seed: int, n: int, longest: int) -> Tensor:
    lengths = torch.randint(1, longest + 1, (n,), generator=torch.Generator().manual_seed(seed))
    return torch.arange(longest) < lengths[:, None]


def theta_by_hand(similarities: NDArray[np.float32], crowd: int) -> NDArray[np.float32]:
    """The (M+1)-th best of each row; 0 where there are no more than M."""
    if similarities.shape[1] <= crowd:
        return np.zeros(len(similarities), np.float32)
    return np.clip(-np.sort(-similarities, axis=1)[:, crowd], 0, 1)


@given(CASES)
def test_scores_equal_those_of_search(case: tuple[int, int, int, float, float]) -> None:
    seed, n_targets, crowd, power, document_weight = case
    scoring = Scoring(power=power)
    queries, targets = unit(seed, 3, 4, 5), unit(seed + 1, n_targets, 6, 5)
    query_mask, target_mask = lengths_mask(seed, 3, 4), lengths_mask(seed + 1, n_targets, 6)
    queries, targets = queries * query_mask[..., None], targets * target_mask[..., None]
    whole = unit(seed + 2, 3, 5) @ unit(seed + 3, n_targets, 5).mT
    n_tokens = torch.randint(1, 127, (3, 4), generator=torch.Generator().manual_seed(seed))
    best = best_matches(queries, targets, target_mask)
    found = evidence_scores(
        best,
        whole,
        n_tokens.float().sqrt() * query_mask,
        batch_thresholds(best, None, crowd),
        batch_thresholds(whole[:, None], None, crowd).squeeze(1),
        power=power,
        document_weight=document_weight,
    )
    for q in range(3):
        own = queries[q][query_mask[q]]
        similarities = np.array(
            [
                [float((target[mask] @ chunk).max()) for target, mask in zip(targets, target_mask, strict=True)]
                for chunk in own
            ],
            np.float32,
        )
        theta, theta_document = (theta_by_hand(rows, crowd) for rows in (similarities, whole[q].numpy()[None]))
        weights = of_search.chunk_weights(n_tokens[q][query_mask[q]].numpy())
        limits = of_search.thresholds(theta, 0.0, weights, scoring)
        of_document = of_search.margin(whole[q].numpy(), float(theta_document[0]), power)
        chunks = of_search.chunk_component(similarities, limits, scoring)
        expected = (1 - document_weight) * chunks + document_weight * of_document
        # Near the threshold a root turns the last digit of a similarity into the third of its margin.
        np.testing.assert_allclose(found[q].numpy(), expected, atol=1e-5 if power >= 1 else 5e-3)


def test_padding_never_wins_against_negative_cosines() -> None:
    targets = torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]])  # the second chunk is padding
    assert best_matches(torch.tensor([[[1.0, 0.0]]]), targets, torch.tensor([[True, False]])).item() == -1.0


def test_best_matches_send_gradients_to_the_best_chunk_alone() -> None:
    queries, targets = unit(0, 2, 3, 4), unit(1, 2, 5, 4).requires_grad_()
    best_matches(queries, targets, torch.ones(2, 5, dtype=torch.bool)).sum().backward()
    by_hand = torch.zeros_like(targets)
    for q in range(2):
        for i in range(3):
            for t in range(2):
                by_hand[t, int((targets[t] @ queries[q, i]).argmax())] += queries[q, i]
    torch.testing.assert_close(targets.grad, by_hand)


def test_positives_do_not_count_for_the_threshold() -> None:
    similarities = torch.tensor([[[0.9, 0.8, 0.5, 0.3, -0.2]]])
    left_out = torch.tensor([[True, False, False, False, False]])
    assert batch_thresholds(similarities, None, 1).item() == pytest.approx(0.8)
    assert batch_thresholds(similarities, left_out, 1).item() == pytest.approx(0.5)
    assert batch_thresholds(similarities, left_out, 3).item() == 0.0  # similarity -0.2
    assert batch_thresholds(similarities, left_out, 4).item() == 0.0  # nobody is left


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_score_does_not_rise_when_all_similarities_move_towards_one(power: float) -> None:
    similarities = torch.rand(3, 4, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    theta = batch_thresholds(similarities, None, 2)
    margin(similarities, theta[..., None], power).sum().backward()
    assert similarities.grad is not None
    towards_one = (similarities.grad * (1 - similarities.detach())).sum()
    assert similarities.grad.abs().sum() > 1
    assert abs(towards_one.item()) < 1e-4


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_under_the_threshold_there_is_neither_score_nor_gradient(power: float) -> None:
    similarities = torch.tensor([-torch.inf, 0.2, 0.6], requires_grad=True)
    margins = margin(similarities, torch.tensor(0.2), power)
    margins.sum().backward()
    assert margins.tolist() == pytest.approx([0, 0, 0.5**power])
    assert similarities.grad is not None
    assert similarities.grad[:2].tolist() == [0, 0]
    assert similarities.grad[2] > 0


def test_with_softening_similarities_below_the_threshold_have_a_gradient() -> None:
    similarities = torch.tensor([-torch.inf, 0.1, 0.2, 0.6, 1.0, 1.001], requires_grad=True)
    margins = margin(similarities, torch.tensor(0.2), 2.0, softening=0.05)
    margins.sum().backward()
    assert (margins.diff() >= 0).all()
    assert margins[[0, -1]].tolist() == [0, 1]
    assert similarities.grad is not None
    assert similarities.grad.isfinite().all()
    assert (similarities.grad[1:4] > 0).all()


def test_a_small_softening_is_nearly_the_score_of_search() -> None:
    similarities = torch.linspace(-1, 1, 50)
    hard, soft = (margin(similarities, torch.tensor(0.3), 2.0, softening) for softening in (0.0, 1e-3))
    torch.testing.assert_close(soft, hard, atol=1e-4, rtol=0)


def test_softened_scores_stay_within_zero_and_one() -> None:
    ones = torch.ones(1, 2, 1)
    scores = evidence_scores(
        ones,
        ones[:, 0],
        torch.tensor([[3.0, 1.0]]),
        torch.tensor([[0.5, 0.9]]),
        torch.tensor([0.2]),
        softening=0.1,
    )
    assert scores.item() == pytest.approx(1.0)


def test_a_chunk_weighs_the_root_of_its_tokens_and_padding_nothing(mean_encoder: MeanEncoder) -> None:
    texts = ["fox " * 12 + "dog dog dog dog", "the old house is red"]
    documents = [mean_encoder.segment(make_document("d", text)) for text in texts]
    tokens = [[chunk.n_tokens for chunk in document.chunks] for document in documents]
    torch.testing.assert_close(
        chunk_weights(documents), torch.tensor([[n**0.5 for n in tokens[0]], [tokens[1][0] ** 0.5, 0.0]])
    )
