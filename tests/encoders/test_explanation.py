"""Explanations by chunks, of SMITH and of CoLDE, are compared with loops over chunks, heads and sections."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders.backbone import inference
from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import ModelExplanation, ModelPair, strongest_pairs
from engine.encoders.smith import DocumentEncoder, SmithEncoder, document_windows, rollout
from engine.encoders.smith_config import Combination
from engine.text.segmentation import Chunk
from tests.encoders.tiny import SMITH, SMITH_PAPER, SMITH_RELEASED, tiny_smith
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
    with pytest.raises(Exception, match=r"^encoder 'plain' computes nothing .* kinds colde and smith do: train one"):
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


@pytest.fixture(scope="module")
def encoder(bert_folder: Path) -> SmithEncoder:
    return tiny_smith(bert_folder)


def _blocks(n: int, seed: int = 0) -> Tensor:
    return normalize(torch.randn((n, 32), generator=torch.Generator().manual_seed(seed)), dim=-1)


def _document(encoder: SmithEncoder) -> DocumentEncoder:
    assert encoder.module.document is not None
    return encoder.module.document


def test_attention_is_that_of_the_layers_of_transformers(bert_folder: Path) -> None:
    document = _document(tiny_smith(bert_folder))
    with torch.inference_mode():
        found = document.attention(_blocks(4))
        seen: list[Tensor] = []
        for layer in document.encoder.layer:
            layer.attention.self.config._attn_implementation = "eager"  # the one that returns weights
            layer.attention.self.register_forward_hook(lambda _part, _given, output: seen.append(output[1]))
        document(_blocks(4)[None], torch.ones((1, 4), dtype=torch.bool))
    assert len(found) == len(seen) == 2
    for mine, theirs in zip(found, seen, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs[0].mean(dim=0).numpy(), atol=1e-6)


def test_rollout_averages_each_layer_with_the_identity() -> None:
    first, second = (torch.rand((3, 3), generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    layers = [one / one.sum(dim=1, keepdim=True) for one in (first, second)]
    expected = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            for between in range(3):
                later = (float(layers[1][i, between]) + (i == between)) / 2
                expected[i, j] += later * (float(layers[0][between, j]) + (between == j)) / 2
    np.testing.assert_allclose(rollout(layers).numpy(), expected, atol=1e-6)


def test_weights_are_the_attention_of_the_block_that_the_document_vector_is_read_from(encoder: SmithEncoder) -> None:
    with torch.inference_mode():
        weights = encoder.module.block_weights(_blocks(4))
        rolled = rollout(_document(encoder).attention(_blocks(4)))
    np.testing.assert_array_equal(weights.numpy(), rolled[0].numpy())
    assert weights.argmax() == 0  # a quarter at least stays at the first of two layers
    assert float(weights.sum()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("combination", [Combination.SUM, Combination.MEAN, Combination.ATTENTION])
def test_both_halves_of_a_fixed_document_vector_count_the_same(bert_folder: Path, combination: Combination) -> None:
    module = tiny_smith(bert_folder, replace(SMITH, combination=combination)).module
    blocks, mask = _blocks(4), torch.ones((1, 4), dtype=torch.bool)
    with torch.inference_mode():
        combined = module.attention(blocks[None], mask)[0] if module.attention else torch.full((4,), 0.25)
        expected = (combined + rollout(module.document.attention(blocks))[0]) / 2
        np.testing.assert_allclose(module.block_weights(blocks).numpy(), expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("config", [SMITH_PAPER, SMITH_RELEASED], ids=["paper", "released"])
def test_a_half_counts_by_its_share_of_the_squared_length(bert_folder: Path, config: object) -> None:
    module = tiny_smith(bert_folder, replace(config, combination=Combination.SUM)).module  # type: ignore[type-var]
    blocks = _blocks(4)
    with torch.inference_mode():
        attended = rollout(module.document.attention(blocks))[0].numpy()
        (document,) = module.documents(blocks[None], torch.ones((1, 4), dtype=torch.bool))[0].numpy()
        share = float((document[:32] ** 2).sum())
        assert 0.5 < share < 1  # of a sum, which is longer than the unit vector in the other half
        expected = share / 4 + (1 - share) * attended
        np.testing.assert_allclose(module.block_weights(blocks).numpy(), expected, atol=1e-5)


def test_windows_of_a_long_document_count_by_their_tokens(encoder: SmithEncoder) -> None:
    segmented = encoder.segment(QUERY)
    windows = document_windows(segmented.chunks, SMITH.max_blocks)
    assert len(windows) > 1
    (found,) = encoder.explain(QUERY, [TARGET])
    n_tokens = sum(chunk.n_tokens for chunk in segmented.chunks)
    for window in windows:
        own = segmented.chunks[window.first : window.stop]
        share = sum(chunk.n_tokens for chunk in own) / n_tokens
        assert float(found.query_weights[window.first : window.stop].sum()) == pytest.approx(share, abs=1e-6)
    assert float(found.query_weights.sum()) == pytest.approx(1, abs=1e-6)
    assert found.query_sections[2] == 0  # it has no token


def test_pairs_sum_to_the_product_of_the_attended_means(encoder: SmithEncoder) -> None:
    (found,) = encoder.explain(QUERY, [TARGET])
    query, target = encoder.encode([QUERY, TARGET])
    assert (found.query_chunks, found.target_chunks) == (query.chunk_spans, target.chunk_spans)
    mine, theirs = found.query_weights @ query.chunks, found.target_weights @ target.chunks
    assert found.total == pytest.approx(float(mine @ theirs), abs=1e-5)
    by_hand = np.outer(found.query_weights, found.target_weights) * (query.chunks @ target.chunks.T)
    np.testing.assert_allclose(found.chunk_pairs, by_hand, atol=1e-6)


def test_attention_does_not_depend_on_the_other_document_but_pairs_do(encoder: SmithEncoder) -> None:
    one, other = encoder.explain(QUERY, [TARGET, QUERY])
    np.testing.assert_allclose(one.query_weights, other.query_weights, atol=1e-6)
    np.testing.assert_allclose(other.query_weights, other.target_weights, atol=1e-6)
    assert one.total != pytest.approx(other.total, abs=1e-3)
