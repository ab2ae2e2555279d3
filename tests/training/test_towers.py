"""Queries and targets of an encoded batch, and their best matches pair by pair."""

from __future__ import annotations

import pytest
import torch

from engine.training.tasks.towers import Towers
from tests.training.made import EXCLUDED, POSITIVES, embedded_batch


def test_queries_and_targets_keep_the_vectors_of_the_encoded_batch() -> None:
    embedded, batch, scores = embedded_batch()
    towers = Towers.of(embedded, batch, scores)
    assert torch.equal(towers.query_chunks, embedded.chunks[:3])
    assert torch.equal(towers.target_chunks, embedded.chunks[3:]) and torch.equal(towers.target_mask, embedded.mask[3:])
    assert torch.equal(towers.positives, POSITIVES) and torch.equal(towers.excluded, EXCLUDED)
    torch.testing.assert_close(towers.weights, torch.tensor([[2.0, 3, 1], [2, 3, 0], [2, 3, 1]]))
    torch.testing.assert_close(towers.cosines(), embedded.documents[:3] @ embedded.documents[3:].T)
    assert towers.teacher_scores is scores
    assert Towers.of(embedded, batch).teacher_scores is None


def test_queries_with_fewer_chunks_than_the_targets_are_not_padded_to_them() -> None:
    embedded, batch, _ = embedded_batch()
    towers = Towers.of(embedded, type(batch)(batch.queries[1:2], batch.targets, batch.positives, batch.excluded))
    assert (towers.query_chunks.shape[1], towers.target_chunks.shape[1]) == (2, 3)


def test_best_matches_and_their_weighted_mean_are_those_of_each_pair() -> None:
    towers = Towers.of(*embedded_batch())
    for row, weights in enumerate(towers.weights.tolist()):
        for column, mask in enumerate(towers.target_mask):
            targets = towers.target_chunks[column][mask]
            queries = [query for query, weight in zip(towers.query_chunks[row], weights, strict=True) if weight]
            best = [max(float(query @ target) for target in targets) for query in queries]
            assert towers.best_matches[row, : len(best), column].tolist() == pytest.approx(best, abs=1e-6)
            mean = sum(weight * own for weight, own in zip(weights, best, strict=False)) / sum(weights)
            assert towers.mean_best_match()[row, column].item() == pytest.approx(mean, abs=1e-6)
