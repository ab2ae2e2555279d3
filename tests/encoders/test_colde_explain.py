"""Explanations of CoLDE are compared with plain loops over chunks and sections."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.colde.config import ColdeConfig
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.colde.explain import Explanation, explain
from engine.encoders.colde.full_chunks import tokens_of_sections
from engine.encoders.colde.sections import full_chunks, headed_sections, place
from engine.encoders.trainable import inference
from engine.encoders.variant import Variant
from engine.errors import EncoderError
from tests.encoders.tiny import COLDE, tiny_colde
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


@pytest.fixture(scope="module")
def encoder(bert_folder: Path) -> ColdeEncoder:
    config = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24)
    return ColdeEncoder.create(bert_folder, config, device="cpu", dtype=torch.float32)


@pytest.fixture(scope="module")
def explanation(encoder: ColdeEncoder) -> Explanation:
    return explain(encoder, QUERY, TARGET)


def test_cosines_are_those_of_the_vectors_that_are_indexed(encoder: ColdeEncoder, explanation: Explanation) -> None:
    query, target = encoder.encode([QUERY, TARGET])
    assert explanation.similarity == pytest.approx(float(query.document @ target.document), abs=1e-5)
    np.testing.assert_allclose(explanation.chunks, query.chunks @ target.chunks.T, atol=1e-5)
    assert (explanation.query_chunks, explanation.target_chunks) == (query.chunk_spans, target.chunk_spans)


def test_attention_is_that_of_the_trained_projections(encoder: ColdeEncoder, explanation: Explanation) -> None:
    attention = encoder.layers.attention
    assert attention is not None
    with inference(encoder.module):
        query, target = encoder.states([encoder.segment(QUERY), encoder.segment(TARGET)])
        q, k = attention.query(query), attention.key(target)
    alpha = np.zeros((len(q), len(k)))
    for head in range(4):
        own = slice(8 * head, 8 * (head + 1))
        for i in range(len(q)):
            logits = np.array([float(q[i, own] @ k[j, own]) / math.sqrt(8) for j in range(len(k))])
            alpha[i] += np.exp(logits) / np.exp(logits).sum() / 4
    np.testing.assert_allclose(explanation.attention, alpha, atol=1e-6)
    np.testing.assert_allclose(explanation.attention.sum(axis=1), 1, atol=1e-6)


def test_a_query_chunk_points_at_the_target_chunk_it_attends_to_most(explanation: Explanation) -> None:
    for row, best in zip(explanation.attention, explanation.most_important, strict=True):
        assert all(row[best] >= other for other in row)


def test_mutual_attention_is_the_mean_of_both_directions(encoder: ColdeEncoder, explanation: Explanation) -> None:
    back = explain(encoder, TARGET, QUERY)
    np.testing.assert_allclose(explanation.mutual_attention, (explanation.attention + back.attention.T) / 2, atol=1e-6)
    np.testing.assert_allclose(explanation.mutual_attention, back.mutual_attention.T, atol=1e-6)


def test_section_scores_equal_the_sum_of_the_paper(explanation: Explanation) -> None:
    for i in range(3):
        rows = [q for q, chunk in enumerate(explanation.query_chunks) if chunk.section == i]
        for j in range(3):
            columns = [r for r, chunk in enumerate(explanation.target_chunks) if chunk.section == j]
            sums = [sum(explanation.attention[q, r] * explanation.chunks[q, r] for r in columns) for q in rows]
            assert explanation.section_scores[i, j] == pytest.approx(sum(sums) / len(sums), abs=1e-6)


def test_section_scores_weighted_by_chunks_sum_to_the_score_of_all_chunks(explanation: Explanation) -> None:
    counts = np.bincount([chunk.section for chunk in explanation.query_chunks])
    together = float((counts[:, None] * explanation.section_scores).sum() / counts.sum())
    assert together == pytest.approx(float(explanation.weighted.sum(axis=1).mean()), abs=1e-6)


def test_the_encoders_own_pairs_sum_to_the_mean_attended_cosine(
    encoder: ColdeEncoder, explanation: Explanation
) -> None:
    (found,) = encoder.explain(QUERY, [TARGET])
    weighted = explanation.weighted / len(explanation.query_chunks)
    np.testing.assert_allclose(found.chunk_pairs, weighted, atol=1e-6)
    np.testing.assert_allclose(found.query_weights, weighted.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.target_weights, weighted.sum(axis=0), atol=1e-6)
    assert found.total == pytest.approx(float(explanation.weighted.sum(axis=1).mean()), abs=1e-6)
    assert (found.query_chunks, found.target_chunks) == (explanation.query_chunks, explanation.target_chunks)


def test_a_pair_of_sections_is_its_score_times_its_share_of_the_query(
    encoder: ColdeEncoder, explanation: Explanation
) -> None:
    found = encoder.explain(QUERY, [QUERY, TARGET])[1]
    counts = np.bincount([chunk.section for chunk in explanation.query_chunks])
    shares = (counts / counts.sum())[:, None]
    np.testing.assert_allclose(found.pairs, shares * explanation.section_scores, atol=1e-6)
    assert found.pairs[:, 1].tolist() == [0, 0, 0]  # that section has no token


def test_every_number_is_in_its_bounds(explanation: Explanation) -> None:
    for name in ("sections", "query_sections", "target_sections", "chunks", "weighted", "section_scores"):
        assert np.abs(getattr(explanation, name)).max() <= 1 + 1e-6
    assert np.abs(explanation.section_scores).sum(axis=1).max() <= 1 + 1e-6
    assert explanation.attention.min() >= 0 and explanation.mutual_attention.min() >= 0


def test_section_cosines_are_those_of_headed_sections_that_attend_in_a_circle(
    encoder: ColdeEncoder, explanation: Explanation
) -> None:
    with inference(encoder.module):
        one, other = (
            encoder.embed_sections([place(headed_sections(encoder.segment(document)))]).numpy()
            for document in (QUERY, TARGET)
        )
    np.testing.assert_allclose(explanation.sections[:, [0, 2]], one @ other.T, atol=1e-5)
    np.testing.assert_allclose(explanation.query_sections, one @ one.T, atol=1e-5)
    np.testing.assert_allclose(np.diag(explanation.query_sections), 1, atol=1e-5)


def test_a_section_without_a_token_has_zeros(explanation: Explanation) -> None:
    assert explanation.sections[:, 1].tolist() == [0, 0, 0]
    assert explanation.section_scores[:, 1].tolist() == [0, 0, 0]
    assert explanation.target_sections[1].tolist() == [0, 0, 0]


def test_a_document_resembles_itself(encoder: ColdeEncoder) -> None:
    own = explain(encoder, QUERY, QUERY)
    assert own.similarity == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(own.sections, own.query_sections, atol=1e-6)
    np.testing.assert_allclose(np.diag(own.chunks), 1, atol=1e-5)


def test_in_the_paper_variant_each_headed_section_is_cut_by_itself(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=Variant.PAPER, chunk_tokens=20))
    own = explain(encoder, QUERY, TARGET)
    assert len(own.query_chunks) < len(explain(tiny_colde(bert_folder), QUERY, TARGET).query_chunks)
    tokens = tokens_of_sections(QUERY, encoder.backbone.tokenizer)
    sections = place([full_chunks(ids, 20) for ids in tokens if ids])
    with inference(encoder.module):
        one = encoder.embed_sections([sections]).numpy()
    np.testing.assert_allclose(own.query_sections, one @ one.T, atol=1e-5)


@pytest.mark.parametrize("config", [ColdeConfig(variant=Variant.RELEASED), ColdeConfig(without_lstm=True)])
def test_an_encoder_without_attention_cannot_explain(bert_folder: Path, config: ColdeConfig) -> None:
    encoder = ColdeEncoder.create(bert_folder, config, device="cpu", dtype=torch.float32)
    message = (
        f"^a CoLDE of variant '{config.variant}' with without_lstm {config.without_lstm} has no attention "
        "to explain by; train one of variant 'fixed' or 'paper', and with its LSTM$"
    )
    with pytest.raises(EncoderError, match=message):
        explain(encoder, QUERY, TARGET)
    with pytest.raises(EncoderError, match=message):
        encoder.explain(QUERY, [TARGET])
