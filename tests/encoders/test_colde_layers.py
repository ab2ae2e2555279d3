"""The modules of CoLDE against their equations, one number at a time."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from engine.encoders.colde.layers import ChunkAttention, ColdeConfig, ColdeLayers, Positions
from engine.encoders.encoder import Pooling, Variant
from engine.errors import EncoderError

WIDTH = 8
SMALL = ColdeConfig(heads=2, lstm_width=3, projection_width=4)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def layers_of(config: ColdeConfig) -> ColdeLayers:
    return ColdeLayers(WIDTH, config).eval()


def padded(*lengths: int) -> tuple[Tensor, Tensor]:
    """Random states; padding holds noise, not zeros."""
    states = torch.randn(len(lengths), max(lengths), WIDTH)
    return states, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def head_weights_by_hand(attention: ChunkAttention, queries: Tensor, keys: Tensor, head: int) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) of one head, a number at a time."""
    d_k = WIDTH // attention.heads
    own = slice(head * d_k, (head + 1) * d_k)
    logits = torch.empty(len(queries), len(keys))
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            logits[i, j] = attention.query(query)[own] @ attention.key(key)[own] / math.sqrt(d_k)
    return logits.exp() / logits.exp().sum(dim=1, keepdim=True)


def attention_by_hand(attention: ChunkAttention, queries: Tensor, keys: Tensor) -> Tensor:
    d_k = WIDTH // attention.heads
    rows = []
    for i in range(len(queries)):
        heads = []
        for head in range(attention.heads):
            weights = head_weights_by_hand(attention, queries, keys, head)[i]
            values = attention.value(keys)[:, head * d_k : (head + 1) * d_k]
            heads.append(sum((w * value for w, value in zip(weights, values, strict=True)), torch.zeros(d_k)))
        rows.append(attention.out(torch.cat(heads)))
    return torch.stack(rows)


def lstm_by_hand(lstm: nn.LSTM, rows: Tensor, *, suffix: str) -> Tensor:
    """Outputs at each row, forwards (suffix "") or backwards."""
    w_in, w_hidden, b_in, b_hidden = (
        getattr(lstm, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden = cell = torch.zeros(lstm.hidden_size)
    outputs = []
    for row in reversed(rows) if suffix else rows:
        gates = w_in @ row + b_in + w_hidden @ hidden + b_hidden
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4)
        cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
        hidden = output_gate.sigmoid() * cell.tanh()
        outputs.append(hidden)
    return torch.stack(outputs[::-1] if suffix else outputs)


def test_a_colde_of_bert_base_has_114_million_weights() -> None:
    with torch.device("meta"):
        weights = [*BertModel(BertConfig()).parameters(), *ColdeLayers(768, ColdeConfig()).parameters()]
    bert = (30_522 + 512 + 2) * 768 + 2 * 768 + 12 * 7_087_872 + (768 * 768 + 768)  # the last is its pooler
    tables = (8 + 64) * 768
    attention = 4 * (768 * 768 + 768)
    norm = 2 * 768
    lstm = 2 * (4 * 256 * (768 + 256) + 2 * 4 * 256)
    projection = 512 * 256 + 256
    assert sum(weight.numel() for weight in weights) == bert + tables + attention + norm + lstm + projection
    assert (bert, tables, attention, norm, lstm, projection) == (
        109_482_240,
        55_296,
        2_362_368,
        1_536,
        2_101_248,
        131_328,
    )
    assert sum(weight.numel() for weight in weights) == 114_134_016


def test_the_released_colde_has_a_wide_lstm_and_no_attention() -> None:
    with torch.device("meta"):
        layers = ColdeLayers(768, ColdeConfig(variant=Variant.RELEASED))
    lstm = 4 * 768 * (768 + 768) + 2 * 4 * 768
    assert sum(weight.numel() for weight in layers.parameters()) == lstm + 768 * 256 + 256


def test_attention_equals_the_equation() -> None:
    attention = ChunkAttention(WIDTH, 2)
    queries, _ = padded(3, 3)
    keys, mask = padded(4, 2)
    found = attention(queries, keys, mask)
    for row, length in enumerate((4, 2)):
        by_hand = attention_by_hand(attention, queries[row], keys[row, :length])
        torch.testing.assert_close(found[row], by_hand, atol=1e-6, rtol=0)


def test_attention_weights_are_the_mean_over_heads_and_sum_to_one() -> None:
    attention = ChunkAttention(WIDTH, 4)
    queries, keys = torch.randn(3, WIDTH), torch.randn(5, WIDTH)
    alpha = attention.weights(queries, keys)
    by_hand = sum((head_weights_by_hand(attention, queries, keys, head) for head in range(4)), torch.zeros(3, 5)) / 4
    torch.testing.assert_close(alpha, by_hand)
    torch.testing.assert_close(alpha.sum(dim=1), torch.ones(3))


def test_heads_must_divide_the_width() -> None:
    message = "^states 10 wide cannot be shared by 4 heads; choose heads that divide it$"
    with pytest.raises(EncoderError, match=message):
        ColdeLayers(10, ColdeConfig())


def test_vectors_of_sections_and_chunks_equal_the_equation() -> None:
    layers = layers_of(SMALL)
    states, mask = padded(4, 2, 3)
    keys = torch.tensor([1, 0, 2])  # the first two are one document, the third was left whole
    sections, chunks = layers(states, mask, keys)
    assert layers.attention is not None and layers.norm is not None and layers.lstm is not None
    for row, length in enumerate((4, 2, 3)):
        key = int(keys[row])
        seen = attention_by_hand(layers.attention, states[row, :length], states[key, : int(mask[key].sum())])
        joined = layers.norm(states[row, :length] + seen)
        forwards = lstm_by_hand(layers.lstm, joined, suffix="")
        backwards = lstm_by_hand(layers.lstm, joined, suffix="_reverse")
        z = layers.projection(torch.cat([forwards[-1], backwards[0]]))
        c = layers.projection(torch.cat([forwards, backwards], dim=1))
        torch.testing.assert_close(sections[row], z / z.norm(), atol=1e-6, rtol=0)
        torch.testing.assert_close(chunks[row, :length], c / c.norm(dim=1, keepdim=True), atol=1e-6, rtol=0)
        assert chunks[row, length:].abs().sum() == 0


@pytest.mark.parametrize(
    "config",
    [SMALL, ColdeConfig(variant=Variant.RELEASED, projection_width=4), ColdeConfig(without_lstm=True)],
    ids=["bilstm", "released", "without-lstm"],
)
def test_packed_sections_equal_runs_one_by_one(config: ColdeConfig) -> None:
    layers = layers_of(config)
    states, mask = padded(1, 5, 3, 2)
    sections, chunks = layers(states, mask, torch.arange(4))
    for row, length in enumerate((1, 5, 3, 2)):
        one, own = layers(states[row : row + 1, :length], mask[row : row + 1, :length], torch.arange(1))
        torch.testing.assert_close(sections[row], one[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(chunks[row, :length], own[0], atol=1e-6, rtol=0)


def test_without_lstm_a_section_is_the_projected_mean_of_its_chunks() -> None:
    layers = layers_of(ColdeConfig(without_lstm=True, projection_width=4))
    states, mask = padded(3, 2)
    sections, _ = layers(states, mask, torch.tensor([1, 0]))
    mean = layers.projection(states[1, :2].mean(dim=0))
    torch.testing.assert_close(sections[1], mean / mean.norm())
    assert layers.attention is None


def test_the_released_section_is_the_last_step_of_one_lstm() -> None:
    layers = layers_of(ColdeConfig(variant=Variant.RELEASED, projection_width=4))
    states, mask = padded(3)
    assert layers.lstm is not None
    last = layers.projection(lstm_by_hand(layers.lstm, states[0], suffix="")[-1])
    torch.testing.assert_close(layers(states, mask, torch.arange(1))[0][0], last / last.norm(), atol=1e-6, rtol=0)


def test_positions_are_the_sum_of_two_embeddings() -> None:
    positions = Positions(WIDTH, 3, clamp=False).eval()
    found = positions(torch.tensor([0, 2, 5]), torch.tensor([4, 0, 99]))
    p, q = positions.sections.weight, positions.chunks.weight
    torch.testing.assert_close(found, torch.stack([p[0] + q[4], p[2] + q[0], p[2] + q[63]]))
    assert q.std().item() == pytest.approx(0.02, rel=0.1)


def test_chunk_numbers_beyond_the_largest_trained_are_clamped_to_it() -> None:
    positions = Positions(WIDTH, 2, clamp=True)
    positions(torch.tensor([0, 0]), torch.tensor([1, 3]))
    positions.eval()
    assert positions.largest.item() == 3
    p, q = positions.sections.weight, positions.chunks.weight
    torch.testing.assert_close(positions(torch.tensor([0, 1]), torch.tensor([2, 7])), p[:2] + q[[2, 3]])
    assert positions.largest.item() == 3


def test_a_pooler_is_created_only_on_request() -> None:
    assert ColdeLayers(WIDTH, SMALL).pooler is None
    pooler = ColdeLayers(WIDTH, ColdeConfig(heads=2, pooling=Pooling.CLS), own_pooler=True).pooler
    assert pooler is not None and pooler.weight.shape == (WIDTH, WIDTH)
