"""Explanations by chunks are compared with loops over chunks, heads and sections."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.backbone import inference
from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import ModelExplanation, ModelPair, strongest_pairs
from engine.text.segmentation import Chunk
from tests.fakes import FakeEncoder, make_document

QUERY = make_document(
    "q", [("Introduction", "The quick brown fox jumps over the lazy dog. " * 6), ("", "Red green light."), ("", " \n ")]
)
TARGET = make_document(
    "t", [("Bank", "The old river bank was dark. " * 5), ("", " \n "), ("House", "Young house. " * 9)]
)
QUERY_CHUNKS = (Chunk(0, 0, 1, 1), Chunk(0, 1, 2, 1), Chunk(1, 6, 7, 1))
TARGET_CHUNKS = (Chunk(0, 0, 1, 1), Chunk(2, 3, 4, 1), Chunk(2, 5, 6, 1), Chunk(2, 6, 7, 1))
VALUES = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.fixture
def explanation() -> ModelExplanation:
    mine, theirs = (VALUES.sum(axis=axis) for axis in (1, 0))
    return ModelExplanation.of_chunks(
        "made", "Drawn.", (QUERY, QUERY_CHUNKS, mine), (TARGET, TARGET_CHUNKS, theirs), VALUES
    )


def test_section_pairs_and_sections_are_sums_of_their_chunks(explanation: ModelExplanation) -> None:
    for i in range(3):
        for j in range(3):
            expected = sum(
                float(VALUES[q, r])
                for q, mine in enumerate(QUERY_CHUNKS)
                for r, theirs in enumerate(TARGET_CHUNKS)
                if (mine.section, theirs.section) == (i, j)
            )
            assert explanation.pairs[i, j] == pytest.approx(expected, abs=1e-6)
    rows, columns = VALUES.sum(axis=1), VALUES.sum(axis=0)
    np.testing.assert_allclose(explanation.query_sections, [rows[0] + rows[1], rows[2], 0], atol=1e-6)
    np.testing.assert_allclose(explanation.target_sections, [columns[0], 0, columns[1:].sum()], atol=1e-6)
    assert explanation.total == pytest.approx(float(VALUES.sum()), abs=1e-5)
    assert repr(explanation) == f"ModelExplanation('made', 3 x 3 sections, total {VALUES.sum():.4f})"


def test_strongest_pairs_come_first_and_equal_ones_in_reading_order() -> None:
    values = np.array([[0.2, 0.5], [-0.3, 0.2], [0.0, 0.5]], np.float32)
    nothing = np.zeros(0, np.float32)
    made = ModelExplanation("made", "", (), (), nothing, nothing, values, nothing, nothing, values)
    expected = [(0, 1, 0.5), (2, 1, 0.5), (0, 0, 0.2), (1, 1, 0.2)]  # nothing at or below 0
    assert strongest_pairs(made) == [ModelPair(i, j, pytest.approx(value)) for i, j, value in expected]
    assert strongest_pairs(made, 1) == [ModelPair(0, 1, 0.5)]
    assert strongest_pairs(made, 0) == []


def test_the_error_of_an_encoder_that_cannot_explain_names_kinds_that_can() -> None:
    encoder = FakeEncoder(name="plain")
    with pytest.raises(Exception, match=r"^encoder 'plain' computes nothing .* of the kind colde do: train one"):
        encoder.explain(QUERY, [TARGET])


def test_pairs_are_the_cosines_of_chunks_times_the_attention_of_the_trained_projections(bert_folder: Path) -> None:
    config = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24)
    encoder = ColdeEncoder.create(bert_folder, config, device="cpu", dtype=torch.float32)
    explanation = encoder.explain(QUERY, [QUERY, TARGET])[1]
    query, target = encoder.encode([QUERY, TARGET])
    attention = encoder.layers.attention
    assert attention is not None
    with inference(encoder.module):
        states, target_states = encoder.states([encoder.segment(QUERY), encoder.segment(TARGET)])
        q, k = attention.query(states), attention.key(target_states)
    alpha = np.zeros((len(q), len(k)))
    for head in range(4):
        own = slice(8 * head, 8 * (head + 1))
        for i in range(len(q)):
            logits = np.array([float(q[i, own] @ k[j, own]) / math.sqrt(8) for j in range(len(k))])
            alpha[i] += np.exp(logits) / np.exp(logits).sum() / 4
    chunk_pairs = alpha * (query.chunks @ target.chunks.T) / len(q)
    pairs = np.zeros((3, 3))
    for i, chunk in enumerate(query.chunk_spans):
        for j, target_chunk in enumerate(target.chunk_spans):
            pairs[chunk.section, target_chunk.section] += chunk_pairs[i, j]
    np.testing.assert_allclose(explanation.chunk_pairs, chunk_pairs, atol=1e-5)
    np.testing.assert_allclose(explanation.pairs, pairs, atol=1e-5)
    np.testing.assert_allclose(explanation.query_weights, chunk_pairs.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(explanation.target_weights, chunk_pairs.sum(axis=0), atol=1e-5)
    assert explanation.pairs[:, 1].tolist() == [0, 0, 0]  # that section has no token
