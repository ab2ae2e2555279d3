"""The modules of CoLDE against their equations, one number at a time."""

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from engine.encoders.colde import ChunkAttention, ColdeConfig, ColdeLayers, Positions
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


def attention_of_torch(attention: ChunkAttention, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The attended rows (n, H) of torch's own module with the same parameters, and its weights (n, m)."""
    module = nn.MultiheadAttention(WIDTH, attention.heads, batch_first=True)
    parts = (attention.query, attention.key, attention.value)
    own = {f"in_proj_{name}": torch.cat([getattr(part, name) for part in parts]) for name in ("weight", "bias")}
    module.load_state_dict({**own, "out_proj.weight": attention.out.weight, "out_proj.bias": attention.out.bias})
    rows, weights = module(queries[None], keys[None], keys[None])
    return rows[0], weights[0]


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


def test_the_released_colde_has_one_wide_lstm_whose_last_step_is_the_section() -> None:
    with torch.device("meta"):
        layers = ColdeLayers(768, ColdeConfig(variant=Variant.RELEASED))
    lstm = 4 * 768 * (768 + 768) + 2 * 4 * 768
    assert sum(weight.numel() for weight in layers.parameters()) == lstm + 768 * 256 + 256
    layers = layers_of(ColdeConfig(variant=Variant.RELEASED, projection_width=4))
    states, mask = padded(3)
    assert layers.lstm is not None
    last = layers.projection(layers.lstm(states)[0][0, -1])
    torch.testing.assert_close(layers(states, mask, torch.arange(1))[0][0], last / last.norm(), atol=1e-6, rtol=0)


def test_attention_equals_the_equation_and_its_weights_the_mean_over_heads() -> None:
    attention = ChunkAttention(WIDTH, 2)
    queries, _ = padded(3, 3)
    keys, mask = padded(4, 2)
    found = attention(queries, keys, mask)
    for row, length in enumerate((4, 2)):
        expected, _ = attention_of_torch(attention, queries[row], keys[row, :length])
        torch.testing.assert_close(found[row], expected, atol=1e-6, rtol=0)
    attention = ChunkAttention(WIDTH, 4)
    queries, keys = torch.randn(3, WIDTH), torch.randn(5, WIDTH)
    alpha = attention.weights(queries, keys)
    torch.testing.assert_close(alpha, attention_of_torch(attention, queries, keys)[1])
    torch.testing.assert_close(alpha.sum(dim=1), torch.ones(3))


def test_vectors_of_sections_and_chunks_equal_the_equation() -> None:
    layers = layers_of(SMALL)
    states, mask = padded(4, 2, 3)
    keys = torch.tensor([1, 0, 2])  # the first two are one document, the third was left whole
    sections, chunks = layers(states, mask, keys)
    assert layers.attention is not None and layers.norm is not None and layers.lstm is not None
    for row, length in enumerate((4, 2, 3)):
        key = int(keys[row])
        seen, _ = attention_of_torch(layers.attention, states[row, :length], states[key, : int(mask[key].sum())])
        (read,), _ = layers.lstm(layers.norm(states[row, :length] + seen)[None])
        z = layers.projection(torch.cat([read[-1, : SMALL.lstm_width], read[0, SMALL.lstm_width :]]))
        c = layers.projection(read)
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


def test_positions_are_the_sum_of_two_embeddings_and_clamped_to_the_largest_trained() -> None:
    positions = Positions(WIDTH, 3, clamp=False).eval()
    found = positions(torch.tensor([0, 2, 5]), torch.tensor([4, 0, 99]))
    p, q = positions.sections.weight, positions.chunks.weight
    torch.testing.assert_close(found, torch.stack([p[0] + q[4], p[2] + q[0], p[2] + q[63]]))
    assert q.std().item() == pytest.approx(0.02, rel=0.1)
    positions = Positions(WIDTH, 2, clamp=True)
    positions(torch.tensor([0, 0]), torch.tensor([1, 3]))
    positions.eval()
    assert positions.largest.item() == 3
    p, q = positions.sections.weight, positions.chunks.weight
    torch.testing.assert_close(positions(torch.tensor([0, 1]), torch.tensor([2, 7])), p[:2] + q[[2, 3]])
    assert positions.largest.item() == 3


def test_heads_must_divide_the_width_and_a_pooler_is_created_only_on_request() -> None:
    assert ColdeLayers(WIDTH, SMALL).pooler is None
    pooler = ColdeLayers(WIDTH, ColdeConfig(heads=2, pooling=Pooling.CLS), own_pooler=True).pooler
    assert pooler is not None and pooler.weight.shape == (WIDTH, WIDTH)
    message = "^states 10 wide cannot be shared by 4 heads; choose heads that divide it$"
    with pytest.raises(EncoderError, match=message):
        ColdeLayers(10, ColdeConfig())
