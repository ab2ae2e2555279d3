"""Explanations of CoLDE are compared with plain loops over chunks and sections."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.layers import ColdeConfig
from engine.encoders.parameters import inference
from tests.fakes import make_document

QUERY = make_document(
    "q",
    [
        ("Introduction", "The quick brown fox jumps over the lazy dog. " * 6),
        ("Model", "A model finds the vector of every chunk. " * 4),
        ("", "Red green light."),
    ],
)
TARGET = make_document(
    "t", [("Bank", "The old river bank was dark. " * 5), ("", " \n "), ("House", "Young house. " * 9)]
)


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
