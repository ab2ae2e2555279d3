"""Each loss over a batch against its equation, one pair at a time; excluded targets have no gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.scoring.evidence import Scoring, chunk_component, margin, thresholds
from engine.training.tasks.evidence import DOCUMENT_WEIGHT
from engine.training.tasks.objectives import ScaledCosine
from engine.training.tasks.pair_losses import PairLosses
from engine.training.tasks.towers import Towers
from tests.training.made import EXCLUDED, POSITIVES, embedded_batch

TAU, CROWD = 0.2, 2

LOSSES: dict[str, Callable[[PairLosses, Towers], Tensor]] = {
    "evidence": PairLosses.evidence,
    "maxsim": PairLosses.maxsim,
    "document": PairLosses.document,
    "supcon": PairLosses.supcon,
    "bce": PairLosses.bce,
    "distillation": PairLosses.distillation,
}


def pair_losses(softening: float = 0.05) -> PairLosses:
    return PairLosses(ScaledCosine(), crowd=CROWD, evidence_temperature=0.1, softening=softening, temperature=TAU)


@pytest.fixture
def towers() -> Towers:
    return Towers.of(*embedded_batch())


def sims(towers: Towers, row: int, column: int) -> list[float]:
    """s_i(t) of each real query chunk."""
    targets = towers.target_chunks[column][towers.target_mask[column]]
    queries = towers.query_chunks[row][towers.weights[row] > 0]
    return [max(float(query @ target) for target in targets) for query in queries]


def maxsim(towers: Towers, row: int, column: int) -> float:
    weights = [float(weight) for weight in towers.weights[row] if weight > 0]
    return sum(w * s for w, s in zip(weights, sims(towers, row, column), strict=True)) / sum(weights)


def cosine(towers: Towers, row: int, column: int) -> float:
    return float(towers.query_documents[row] @ towers.target_documents[column])


def ranked(scores: Callable[[int, int], float], tau: float) -> float:
    """The ranking loss, positive by positive."""
    losses = []
    for row, column in POSITIVES.nonzero().tolist():
        negatives = [at for at in range(6) if not POSITIVES[row, at] and not EXCLUDED[row, at]]
        exps = [math.exp(scores(row, at) / tau) for at in (column, *negatives)]
        losses.append(-math.log(exps[0] / sum(exps)))
    return sum(losses) / len(losses)


def test_maxsim_ranks_by_the_mean_best_match(towers: Towers) -> None:
    expected = ranked(lambda row, column: maxsim(towers, row, column), TAU)
    assert pair_losses().maxsim(towers).item() == pytest.approx(expected, abs=1e-5)


def test_document_ranks_by_cosines_of_documents(towers: Towers) -> None:
    expected = ranked(lambda row, column: cosine(towers, row, column), TAU)
    assert pair_losses().document(towers).item() == pytest.approx(expected, abs=1e-5)


def test_evidence_without_softening_ranks_by_the_score_of_search(towers: Towers) -> None:
    scoring = Scoring()
    scores = np.zeros((3, 6))
    for row in range(3):
        best = np.array([sims(towers, row, column) for column in range(6)], np.float32).T  # (I, T)
        whole = np.array([cosine(towers, row, column) for column in range(6)], np.float32)
        crowd = [at for at in range(6) if not POSITIVES[row, at] and not EXCLUDED[row, at]]
        theta, theta_document = (-np.sort(-values, axis=-1)[..., CROWD] for values in (best[:, crowd], whole[crowd]))
        weights = np.array([float(weight) for weight in towers.weights[row] if weight > 0])
        limits = thresholds(np.clip(theta, 0, 1), 0.0, weights, scoring)
        of_document = margin(whole, max(0.0, float(theta_document)), scoring.power)
        chunks = chunk_component(best, limits, scoring)
        scores[row] = (1 - DOCUMENT_WEIGHT) * chunks + DOCUMENT_WEIGHT * of_document
    losses = pair_losses(softening=0.0)
    np.testing.assert_allclose(losses.evidence_scores(towers).numpy(), scores, atol=1e-5)
    expected = ranked(lambda row, column: scores[row, column], 0.1)
    assert losses.evidence(towers).item() == pytest.approx(expected, abs=1e-4)


def test_supcon_attracts_pairs_and_ignores_documents_that_may_be_related(towers: Towers) -> None:
    """Documents 0-2 are queries, 3-8 targets; two documents of one side are ignored where they share a relation."""
    vectors = torch.cat([towers.query_documents, towers.target_documents])
    related = {(row, 3 + column) for row, column in (POSITIVES | EXCLUDED).nonzero().tolist()}
    together = {(row, 3 + column) for row, column in POSITIVES.nonzero().tolist()}
    together |= {(j, i) for i, j in together}
    neighbours = [{j for a, j in related if a == i} | {a for a, j in related if j == i} for i in range(9)]

    def is_open(i: int, j: int) -> bool:
        if (i < 3) == (j < 3):
            return bool(neighbours[i] & neighbours[j])
        return j in neighbours[i] and (i, j) not in together

    losses = []
    for i in range(9):
        counted = [j for j in range(9) if j != i and not is_open(i, j)]
        exp = {j: math.exp(float(vectors[i] @ vectors[j]) / TAU) for j in counted}
        own = [j for j in counted if (i, j) in together]
        if own:
            losses.append(-sum(math.log(exp[j] / sum(exp.values())) for j in own) / len(own))
    assert len(losses) == 7
    assert pair_losses().supcon(towers).item() == pytest.approx(sum(losses) / len(losses), abs=1e-5)


def test_bce_is_the_mean_over_pairs_with_positives_and_negatives_balanced(towers: Towers) -> None:
    losses: dict[bool, list[float]] = {True: [], False: []}
    for row, column in (~EXCLUDED).nonzero().tolist():
        probability = 1 / (1 + math.exp(-6 * cosine(towers, row, column)))
        is_positive = bool(POSITIVES[row, column])
        losses[is_positive].append(-math.log(probability if is_positive else 1 - probability))
    assert [len(own) for own in losses.values()] == [4, 10]
    expected = sum(sum(own) / len(own) for own in losses.values()) / 2
    assert pair_losses().bce(towers).item() == pytest.approx(expected, abs=1e-5)


def test_bce_of_negatives_alone_is_their_mean(towers: Towers) -> None:
    negatives = replace(towers, positives=torch.zeros_like(POSITIVES))
    cosines = [cosine(towers, row, column) for row, column in (~EXCLUDED).nonzero().tolist()]
    expected = sum(math.log(1 + math.exp(6 * own)) for own in cosines) / len(cosines)
    assert pair_losses().bce(negatives).item() == pytest.approx(expected, abs=1e-5)


def test_distillation_is_the_divergence_from_the_teacher(towers: Towers) -> None:
    assert towers.teacher_scores is not None
    divergences = []
    for row in range(3):
        columns = [at for at in range(6) if not EXCLUDED[row, at]]
        teacher = [math.exp(float(towers.teacher_scores[row, at]) / TAU) for at in columns]
        student = [math.exp(maxsim(towers, row, at) / TAU) for at in columns]
        p, q = ([value / sum(values) for value in values] for values in (teacher, student))
        divergences.append(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    expected = sum(divergences) / 3
    assert pair_losses().distillation(towers).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_an_excluded_target_has_no_gradient_and_the_others_have(towers: Towers, name: str) -> None:
    documents = towers.target_documents.clone().requires_grad_()
    chunks = towers.target_chunks.clone().requires_grad_()
    LOSSES[name](pair_losses(), replace(towers, target_documents=documents, target_chunks=chunks)).backward()
    gradients = [leaf.grad for leaf in (documents, chunks) if leaf.grad is not None]
    assert gradients
    for gradient in gradients:
        assert not gradient[5].any()
        assert gradient[0].any() and gradient[4].any()
