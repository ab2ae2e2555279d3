"""CoLDE: its layers, variants and chunks, and the states of its first stage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    LongformerConfig,
    LongformerModel,
)

from engine.encoders.backbone import inference
from engine.encoders.colde import (
    ChunkAttention,
    ColdeConfig,
    ColdeEncoder,
    ColdeLayers,
    Freeze,
    PlacedChunk,
    PlacedSection,
    Positions,
    TokenIds,
    place,
    split_sections,
    tokens_of_sections,
)
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.loading import load_trainable
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import TOKEN_BUDGET
from engine.errors import EncoderError
from tests.encoders.tiny import COLDE, tiny_colde
from tests.fakes import make_document

A, B, C = ([5, 6, 7], [8, 9, 10, 11], [12, 13]), ([14, 15], [16, 17, 18]), ([19, 20], [21], [22, 23, 24])


@pytest.fixture(scope="module")
def encoder(bert_folder: Path) -> ColdeEncoder:
    return tiny_colde(bert_folder)


def vectors(encoder: ColdeEncoder, *documents: Sequence[PlacedSection]) -> Tensor:
    with inference(encoder.module):
        return encoder.embed_sections(documents)


def pooled_by_hand(folder: Path, chunk: PlacedChunk, encoder: ColdeEncoder) -> Tensor:
    """tanh(W T_cls + b) of BERT over Wordemb(ids) + E_sec[p] + E_chunk[q], one chunk alone."""
    bert = AutoModel.from_pretrained(folder).eval()
    tokenizer, positions = encoder.backbone.tokenizer, encoder.layers.positions
    assert positions is not None
    words = [*tokenizer.prefix, *chunk.token_ids, *tokenizer.suffix]
    rows = [
        bert.embeddings.word_embeddings.weight[word]
        + positions.sections.weight[chunk.section]
        + positions.chunks.weight[chunk.chunk]
        for word in words
    ]
    hidden = bert(inputs_embeds=torch.stack(rows)[None]).last_hidden_state[0]
    pooled: Tensor = torch.tanh(bert.pooler.dense(hidden[0]))
    return pooled


def test_a_state_is_the_pooled_output_over_words_and_numbers(encoder: ColdeEncoder, bert_folder: Path) -> None:
    sections = place([A, B])
    with torch.inference_mode():
        states = encoder.section_states(sections)
        for section, own in zip(sections, states, strict=True):
            for chunk, state in zip(section, own, strict=True):
                torch.testing.assert_close(state, pooled_by_hand(bert_folder, chunk, encoder), atol=1e-5, rtol=0)


def test_the_mean_of_tokens_can_be_pooled_instead(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, pooling=Pooling.MEAN, without_positions=True))
    with torch.inference_mode():
        found = encoder.section_states(place([A]))[0]
        expected = encoder.backbone.embed(A, 64)
    torch.testing.assert_close(torch.nn.functional.normalize(found, dim=1), expected, atol=1e-6, rtol=0)


def test_each_section_attends_to_the_next_and_the_last_to_the_first(encoder: ColdeEncoder) -> None:
    first, second, third = vectors(encoder, place([A, B, C]))
    changed = vectors(encoder, place([A, B, ([19, 20], [21], [25])]))
    torch.testing.assert_close(changed[0], first, atol=1e-6, rtol=0)
    assert not torch.allclose(changed[1], second, atol=1e-4)
    assert not torch.allclose(changed[2], third, atol=1e-4)
    changed = vectors(encoder, place([([5, 6, 7], [26], [12, 13]), B, C]))
    torch.testing.assert_close(changed[1], second, atol=1e-6, rtol=0)
    assert not torch.allclose(changed[2], third, atol=1e-4)


def test_no_forward_pass_is_larger_than_the_budget(encoder: ColdeEncoder) -> None:
    sizes: list[int] = []

    def record(_module: Any, _args: Any, given: dict[str, Tensor]) -> None:  # noqa: ANN401
        sizes.append(given["inputs_embeds"].shape[0] * given["inputs_embeds"].shape[1])

    handle = encoder.backbone.model.register_forward_pre_hook(record, with_kwargs=True)
    encoded = encoder.encode([make_document("d", "fox dog. " * 3000)])[0]
    handle.remove()
    assert encoded.coverage.tokens_read == 9000
    assert max(sizes) <= TOKEN_BUDGET < sum(sizes)


HEADED = [("Part", "One two three four five. Six seven."), ("", "Eight."), ("Last", "The old fox was red. " * 6)]


@pytest.mark.parametrize("variant", [Variant.PAPER, Variant.RELEASED])
def test_chunks_of_the_paper_are_full_and_run_on_over_headings(bert_folder: Path, variant: Variant) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=variant))
    document = make_document("d", HEADED)
    segmented = encoder.segment(document)
    assert [chunk.n_tokens for chunk in segmented.chunks[:-1]] == [12] * (len(segmented.chunks) - 1)
    every = [token for ids in tokens_of_sections(document, encoder.backbone.tokenizer) for token in ids]
    assert [token for ids in segmented.token_ids for token in ids] == every
    starts = [section.start for section in document.sections]
    assert [chunk.section for chunk in segmented.chunks] == [
        sum(start <= chunk.start for start in starts) - 1 for chunk in segmented.chunks
    ]
    assert any(chunk.stop > document.sections[chunk.section].stop for chunk in segmented.chunks)
    fixed = tiny_colde(bert_folder).segment(document)
    assert all(chunk.stop <= document.sections[chunk.section].stop for chunk in fixed.chunks)


@pytest.mark.parametrize("variant", Variant)
def test_headed_sections_leave_out_those_without_a_token(bert_folder: Path, variant: Variant) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=variant))
    headed = encoder.headed(encoder.segment(make_document("d", [("A", "fox " * 15), ("", " "), ("C", "dog")])))
    assert {number: [len(ids) for ids in chunks] for number, chunks in headed.items()} == {0: [12, 4], 2: [2]}


@pytest.mark.parametrize("variant", [Variant.PAPER, Variant.RELEASED])
def test_in_training_a_section_is_cut_from_its_own_first_token(bert_folder: Path, variant: Variant) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=variant))
    document = make_document("d", HEADED)
    tokens = tokens_of_sections(document, encoder.backbone.tokenizer)
    parts = encoder.split(encoder.segment(document), 2)
    for part, expected in zip(parts, ([*tokens[0], *tokens[1]], tokens[2]), strict=True):
        assert [token for chunk in part for token in chunk.token_ids] == list(expected)
        assert {len(chunk.token_ids) for chunk in part[:-1]} <= {12}


def test_the_released_variant_reads_ten_chunks_of_each_section_in_training(bert_folder: Path) -> None:
    config = ColdeConfig(Variant.RELEASED, chunk_tokens=12, lstm_width=16, projection_width=24)
    encoder = tiny_colde(bert_folder, config)
    segmented = encoder.segment(make_document("d", "fox " * 500))
    assert [len(part) for part in encoder.split(segmented, 2)] == [10, 10]
    assert [len(part) for part in encoder.split(segmented, 1)] == [10]


def test_the_released_variant_reads_ten_chunks_and_coverage_counts_them(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=Variant.RELEASED))
    encoded = encoder.encode([make_document("d", "fox " * 300)])[0]
    assert (encoded.coverage.tokens_read, encoded.coverage.tokens_total) == (120, 300)
    assert len(encoded.chunk_spans) == 10
    assert encoder.encode([make_document("d", "fox " * 100)])[0].coverage.share == 1


@pytest.mark.parametrize(("variant", "most"), [(Variant.PAPER, 64), (Variant.RELEASED, 10), (Variant.FIXED, 16)])
def test_the_limit_of_chunks_in_training_depends_on_the_variant(variant: Variant, most: int) -> None:
    assert ColdeConfig(variant).training_chunks == most
    assert ColdeConfig(variant, max_chunks=3).training_chunks == 3


def test_the_released_variant_adds_numbers_to_every_token_id_within_the_vocabulary(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, variant=Variant.RELEASED))
    bert = AutoModel.from_pretrained(bert_folder).eval()
    tokenizer = encoder.backbone.tokenizer
    ids = torch.tensor([[*tokenizer.prefix, 8, 9, 10, *tokenizer.suffix]])
    with torch.inference_mode():
        state = encoder.section_states([(PlacedChunk([8, 9, 10], 1, 3),)])[0]
        expected = bert(input_ids=ids + 4, token_type_ids=torch.ones_like(ids)).pooler_output
    torch.testing.assert_close(state, expected, atol=1e-6, rtol=0)
    last = encoder.backbone.model.config.vocab_size - 1
    with torch.inference_mode():
        states = encoder.section_states([(PlacedChunk([last], 0, 9),)])[0]
    assert torch.isfinite(states).all()


def test_long_sections_are_cut_at_max_chunks_in_training_only(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, max_chunks=2))
    segmented = encoder.segment(make_document("d", "fox " * 100))
    assert [[len(chunk.token_ids) for chunk in part] for part in encoder.split(segmented, 2)] == [[12, 12], [12, 12]]
    assert [len(part) for part in encoder.split(segmented, 1)] == [4]
    assert len(encoder.encode_segmented([segmented])[0].chunks) == 9


def test_only_the_last_layer_and_the_pooler_of_a_frozen_backbone_are_trained(bert_folder: Path) -> None:
    encoder = tiny_colde(bert_folder, replace(COLDE, freeze=Freeze.ALL_BUT_LAST))
    encoder.module.train()
    encoder.embed_sections([place([A, B])]).sum().backward()
    trained = {name for name, weight in encoder.module.named_parameters() if weight.grad is not None}
    of_backbone = {name for name, _ in encoder.module.named_parameters() if name.startswith("backbone.")}
    last = {name for name in of_backbone if name.startswith(("backbone.encoder.layer.1.", "backbone.pooler."))}
    own = {f"layers.{name}" for name, _ in encoder.layers.named_parameters() if not name.startswith("positions.")}
    assert trained == last | own


def test_a_backbone_without_pooler_gets_one(bert_folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    size = Tokenizer(bert_folder).vocabulary_size
    config = DistilBertConfig(vocab_size=size, dim=32, hidden_dim=64, n_layers=2, n_heads=4, max_position_embeddings=48)
    DistilBertModel(config).save_pretrained(tmp_path / "distil")
    Tokenizer(bert_folder).save_pretrained(tmp_path / "distil")
    encoder = tiny_colde(tmp_path / "distil", replace(COLDE, freeze=Freeze.ALL_BUT_LAST))
    assert encoder.layers.pooler is not None
    encoder.save_pretrained(tmp_path / "saved")
    loaded = load_trainable(str(tmp_path / "saved"), device="cpu", dtype=torch.float32)
    document = make_document("d", "the old fox " * 20)
    assert np.array_equal(loaded.encode([document])[0].chunks, encoder.encode([document])[0].chunks)


def test_a_backbone_of_sparse_attention_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    size = Tokenizer(bert_folder).vocabulary_size
    config = LongformerConfig(
        vocab_size=size,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        attention_window=[4],
        max_position_embeddings=66,
    )
    LongformerModel(config).save_pretrained(tmp_path)
    Tokenizer(bert_folder).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match="is a longformer, made to read long texts at once; CoLDE reads chunks"):
        tiny_colde(tmp_path)


def sections_of(*lengths: list[int]) -> list[tuple[TokenIds, ...]]:
    """Sections of chunks of these lengths, whose tokens count up from 0."""
    sections = []
    first = 0
    for section in lengths:
        ends = [first + sum(section[: number + 1]) for number in range(len(section))]
        sections.append(tuple(tuple(range(a, b)) for a, b in zip([first, *ends], ends, strict=False)))
        first += sum(section)
    return sections


def test_chunks_are_numbered_by_section_and_place() -> None:
    assert place([[(1, 2), (3,)], [(4,)]]) == (
        (PlacedChunk((1, 2), 0, 0), PlacedChunk((3,), 0, 1)),
        (PlacedChunk((4,), 1, 0),),
    )


@pytest.mark.parametrize(
    ("sections", "n_parts", "expected"),
    [
        ([[4], [4], [4], [4]], 2, [8, 8]),
        ([[1], [1], [1], [9]], 2, [3, 9]),
        ([[9], [1], [1], [1]], 2, [9, 3]),
        ([[9], [1], [1], [1]], 3, [9, 1, 2]),
        ([[3], [3], [3], [3], [3]], 3, [6, 3, 6]),
        ([[20], [1]], 2, [20, 1]),
        ([[5], [6]], 1, [11]),
    ],
)
def test_neighbours_make_parts_of_like_size(sections: list[list[int]], n_parts: int, expected: list[int]) -> None:
    parts = split_sections(sections_of(*sections), n_parts, 5, refill=False)
    assert [sum(len(ids) for ids in part) for part in parts] == expected


@pytest.mark.parametrize("refill", [False, True])
def test_few_sections_are_cut_into_equal_stretches_and_few_tokens_into_fewer_parts(refill: bool) -> None:
    assert split_sections(sections_of([5, 2]), 3, 2, refill=refill) == [((0, 1),), ((2, 3),), ((4, 5), (6,))]
    assert split_sections(sections_of([2]), 5, 10, refill=refill) == [((0,),), ((1,),)]


@given(
    lengths=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=6),
    n_parts=st.integers(1, 8),
)
def test_a_split_keeps_every_token_once_and_in_order(lengths: list[list[int]], n_parts: int) -> None:
    by_chunks, refilled = (split_sections(sections_of(*lengths), n_parts, 9, refill=refill) for refill in (False, True))
    flat = [[[token for ids in part for token in ids] for part in parts] for parts in (by_chunks, refilled)]
    assert flat[0] == flat[1]
    assert [token for part in flat[0] for token in part] == list(range(sum(map(sum, lengths))))
    assert len(by_chunks) == min(n_parts, sum(map(sum, lengths)))
    assert all(1 <= len(ids) <= 9 for part in (*by_chunks, *refilled) for ids in part)
    assert all(len(ids) == 9 for part in refilled for ids in part[:-1])


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
