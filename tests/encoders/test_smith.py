"""SMITH: its layers, variants and blocks, and windows of long documents."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm

from engine.encoders.encoder import Variant
from engine.encoders.smith import (
    BLOCK_BUDGET,
    BlockFilling,
    SmithEncoder,
    SmithModule,
    document_windows,
    fill_truncating,
)
from engine.encoders.smith_config import Combination, SmithConfig, match_bert, smith_short
from engine.encoders.smith_config import smith as smith_of
from engine.encoders.trainable import TOKEN_BUDGET
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.segmentation import Chunk, TokenWindow
from tests.encoders.tiny import MATCHBERT, SMITH, SMITH_PAPER, SMITH_RELEASED, tiny_smith
from tests.fakes import make_document

CONFIGS = [SMITH, replace(SMITH, combination=Combination.ATTENTION), SMITH_PAPER, SMITH_RELEASED, MATCHBERT]
IDS = ["fixed", "attention", "paper", "released", "matchbert"]


@pytest.fixture(scope="module")
def smith(bert_folder: Path) -> SmithEncoder:
    return tiny_smith(bert_folder)


@contextmanager
def record_shapes(module: nn.Module, passes: list[tuple[int, ...]]) -> Iterator[None]:
    """Record the shapes of the inputs of a module in `passes`."""

    def note(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        passes.append(tuple(arguments[0].shape))

    handle = module.register_forward_pre_hook(note)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize(("config", "separators"), [(SMITH, 1), (SMITH_PAPER, 2), (SMITH_RELEASED, 2), (MATCHBERT, 1)])
def test_the_papers_blocks_end_with_two_separators(bert_folder: Path, config: SmithConfig, separators: int) -> None:
    encoder = tiny_smith(bert_folder, config)
    ids, mask = encoder.pad([[7, 8], [9]])
    (cls,), (sep,), padding = encoder.tokenizer.prefix, encoder.tokenizer.suffix, encoder.tokenizer.pad_id
    assert ids.tolist() == [[cls, 7, 8, *[sep] * separators], [cls, 9, *[sep] * separators, padding]]
    assert mask.tolist() == [[True] * (3 + separators), [True] * (2 + separators) + [False]]


def test_the_document_is_the_token_weighted_mean_of_its_windows(smith: SmithEncoder, documents: list[Document]) -> None:
    segmented = smith.segment(documents[0])
    windows = document_windows(segmented.chunks, 4)
    assert len(windows) > 2
    total = torch.zeros(32)
    with torch.no_grad():
        states = smith.states([segmented])[0]
        for window in windows:
            blocks = states[window.first : window.stop]
            vectors, _ = smith.module.documents(blocks[None], torch.ones(1, len(blocks), dtype=torch.bool))
            total += vectors[0] * sum(len(ids) for ids in segmented.token_ids[window.first : window.stop])
    np.testing.assert_allclose(smith.encode([documents[0]])[0].document, total / total.norm(), atol=1e-5)


@pytest.mark.slow
def test_no_pass_is_longer_than_its_budget_however_long_the_document(smith: SmithEncoder) -> None:
    segmented = smith.segment(make_document("d", "fox. " * 40_000))
    passes: list[tuple[int, ...]] = []
    windows: list[tuple[int, ...]] = []
    document = smith.module.document
    assert document is not None
    with torch.inference_mode(), record_shapes(smith.module.sentence, passes), record_shapes(document, windows):
        embedded = smith.embed([segmented])
    assert segmented.coverage.share == 1
    assert embedded.chunks.shape == (1, len(segmented.chunks), 32)
    assert max(n * length for n, length in passes) <= TOKEN_BUDGET
    assert max(n * length for n, length, _ in windows) <= BLOCK_BUDGET
    assert sum(n for n, _ in passes) == len(segmented.chunks)
    assert max(length for _, length, _ in windows) == SMITH.max_blocks


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_mixed_precision_gives_nearly_the_same_vectors(
    bert_folder: Path, documents: list[Document], config: SmithConfig
) -> None:
    encoder = tiny_smith(bert_folder, config)
    segmented = [encoder.segment(document) for document in documents]
    with torch.no_grad():
        full = encoder.embed(segmented)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = encoder.embed(segmented)
        (mixed.documents[0] @ mixed.documents[2]).backward()
    assert mixed.documents.dtype == mixed.chunks.dtype == torch.float32
    assert float((full.documents * mixed.documents.detach()).sum(1).min()) > 0.99


def test_a_tokenizer_without_separators_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(EncoderError) as raised:
        SmithEncoder.create(tmp_path, SMITH, device="cpu")
    assert str(raised.value) == (
        f"the tokenizer of {tmp_path} puts 0 tokens before a text and 0 after it, SMITH reads [CLS] text [SEP]; "
        "take a BERT's tokenizer"
    )


def spans(windows: list[TokenWindow]) -> list[tuple[int, int]]:
    return [(window.first, window.stop) for window in windows]


def ends(lengths: list[int]) -> list[int]:
    return [sum(lengths[: number + 1]) for number in range(len(lengths))]


def released_by_hand(lengths: list[int], capacity: int) -> list[list[int]]:
    """The released filling, over lists of token numbers: append, and cut when the block is written."""
    blocks: list[list[int]] = []
    block: list[int] = []
    number = 0
    for length in lengths:
        sentence = list(range(number, number + length))
        number += length
        if block and len(block) + length > capacity:
            blocks.append(block[:capacity])
            block = []
        block += sentence
    return [*blocks, block[:capacity]]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 12))
def test_truncated_filling_equals_that_of_the_released_code(lengths: list[int], capacity: int) -> None:
    windows = fill_truncating(ends(lengths), capacity)
    assert [list(range(window.first, window.stop)) for window in windows] == released_by_hand(lengths, capacity)


@pytest.mark.parametrize(
    ("config", "filled"),
    [
        (
            SmithConfig(Variant.PAPER, block_tokens=8, max_blocks=3),
            [([5, 5], [(0, 5), (5, 10)]), ([5, 5, 5], [(0, 5)]), ([5], [])],
        ),
        (match_bert(Variant.PAPER, block_tokens=12), [([4, 3], [(0, 7)]), ([], []), ([9], [(0, 3)]), ([2], [])]),
    ],
    ids=["max_blocks of a document", "first tokens of a document"],
)
def test_the_papers_read_the_beginning_of_a_document_across_its_sections(
    config: SmithConfig, filled: list[tuple[list[int], list[tuple[int, int]]]]
) -> None:
    filling = BlockFilling(config)
    for lengths, expected in filled:
        assert spans(filling(ends(lengths))) == expected


def blocks(sections: list[int]) -> list[Chunk]:
    return [Chunk(number, 0, 1, 1) for number, count in enumerate(sections) for _ in range(count)]


def test_windows_are_cut_between_sections_longer_ones_split_and_over_long_sentences_cut() -> None:
    assert spans(document_windows(blocks([3, 2, 4, 5]), 6)) == [(0, 5), (5, 9), (9, 14)]
    assert spans(document_windows(blocks([2, 9, 1]), 4)) == [(0, 2), (2, 6), (6, 10), (10, 12)]
    assert spans(fill_truncating(ends([3, 2, 9, 1]), 5)) == [(0, 5), (5, 10), (14, 15)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 12))
def test_windows_hold_every_block_once(sections: list[int], most: int) -> None:
    windows = document_windows(blocks(sections), most)
    assert windows[0].first == 0
    assert windows[-1].stop == sum(sections)
    assert all(one.stop == other.first for one, other in pairwise(windows))
    assert all(1 <= window.stop - window.first <= most for window in windows)


TINY = replace(SMITH, width=16, sentence_ffn=24, sentence_positions=12, document_heads=2, document_ffn=24)
VOCABULARY = 30


def make_module(config: SmithConfig = TINY, *, seed: int = 0) -> SmithModule:
    """A module with weights ten times the initial ones, with which all vectors would be nearly alike."""
    module = SmithModule(config, VOCABULARY, seed=seed).eval()
    with torch.no_grad():
        for weights in module.parameters():
            if weights.dim() == 2:
                weights.mul_(10)
    return module


def layer_by_hand(weights: Mapping[str, Tensor], name: str, states: Tensor, heads: int) -> Tensor:
    """One post-LN layer of BERT over one sequence (L, H), a head and a query at a time."""

    def dense(part: str, rows: Tensor) -> Tensor:
        return rows @ weights[f"{name}.{part}.weight"].T + weights[f"{name}.{part}.bias"]

    def norm(part: str, rows: Tensor) -> Tensor:
        scale, shift = weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"]
        return layer_norm(rows, rows.shape[-1:], scale, shift, eps=1e-12)

    query, key, value = (dense(f"attention.self.{part}", states) for part in ("query", "key", "value"))
    attended = torch.zeros_like(states)
    size = states.shape[1] // heads
    for head in range(heads):
        columns = slice(head * size, (head + 1) * size)
        for row in range(len(states)):
            scores = (key[:, columns] @ query[row, columns]) / math.sqrt(size)
            attended[row, columns] = scores.softmax(0) @ value[:, columns]
    states = norm("attention.output.LayerNorm", states + dense("attention.output.dense", attended))
    intermediate = gelu(dense("intermediate.dense", states), approximate="tanh")
    return norm("output.LayerNorm", states + dense("output.dense", intermediate))


def block_by_hand(module: SmithModule, ids: Tensor) -> Tensor:
    """h of one block without padding."""
    weights, config = module.state_dict(), module.config
    table = "sentence.bert.embeddings"
    states = weights[f"{table}.word_embeddings.weight"][ids] + weights[f"{table}.token_type_embeddings.weight"][0]
    states = states + weights[f"{table}.position_embeddings.weight"][: len(ids)]
    states = layer_norm(
        states, states.shape[-1:], weights[f"{table}.LayerNorm.weight"], weights[f"{table}.LayerNorm.bias"], eps=1e-12
    )
    for number in range(config.sentence_layers):
        states = layer_by_hand(weights, f"sentence.bert.encoder.layer.{number}", states, config.sentence_heads)
    pooled = torch.tanh(
        weights["sentence.bert.pooler.dense.weight"] @ states[0] + weights["sentence.bert.pooler.dense.bias"]
    )
    if config.is_hierarchical:
        pooled = torch.relu(weights["sentence.dense.weight"] @ pooled + weights["sentence.dense.bias"])
    return pooled / pooled.norm()


def rows_by_hand(module: SmithModule, blocks: Tensor) -> Tensor:
    """v_i of the blocks (n, H) of one document."""
    weights, config = module.state_dict(), module.config
    states = blocks + weights["document.positions.weight"][: len(blocks)]
    states = layer_norm(
        states, states.shape[-1:], weights["document.norm.weight"], weights["document.norm.bias"], eps=1e-12
    )
    for number in range(config.document_layers):
        states = layer_by_hand(weights, f"document.encoder.layer.{number}", states, config.document_heads)
    pooled = torch.tanh(states @ weights["document.pooler.weight"].T + weights["document.pooler.bias"])
    rows = pooled @ weights["heads.0.weight"].T + weights["heads.0.bias"]
    if config.variant is Variant.RELEASED:
        rows = torch.relu(rows)
    return rows / rows.norm(dim=-1, keepdim=True)


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(VOCABULARY, (5, 8), generator=torch.Generator().manual_seed(3))


LENGTHS = (8, 5, 1, 7, 3)


def padded_blocks(module: SmithModule, ids: Tensor) -> Tensor:
    """h of five blocks that are padded to the longest."""
    mask = torch.arange(8) < torch.tensor(LENGTHS)[:, None]
    return module.blocks(ids, mask)[1]


@pytest.mark.parametrize("config", [TINY, replace(TINY, document_layers=0, max_blocks=1)], ids=["smith", "matchbert"])
@torch.no_grad()
def test_a_block_is_read_by_the_equation_and_padding_never_changes_it(config: SmithConfig, ids: Tensor) -> None:
    module = make_module(config)
    expected = torch.stack([block_by_hand(module, row[:length]) for row, length in zip(ids, LENGTHS, strict=True)])
    torch.testing.assert_close(padded_blocks(module, ids), expected, atol=1e-5, rtol=0)
    assert float((expected @ expected.T).min()) < 0.9


@pytest.mark.parametrize("variant", Variant)
@torch.no_grad()
def test_a_document_is_read_by_the_equation_and_padding_never_changes_it(variant: Variant, ids: Tensor) -> None:
    module = make_module(replace(TINY, variant=variant))
    blocks = padded_blocks(module, ids)
    first, second = rows_by_hand(module, blocks[:2]), rows_by_hand(module, blocks[2:])
    together = torch.stack([torch.cat([blocks[:2], torch.ones(1, 16)]), blocks[2:]])
    documents, chunks = module.documents(together, torch.tensor([[True, True, False], [True, True, True]]))
    torch.testing.assert_close(chunks[0, :2], first, atol=1e-5, rtol=0)
    torch.testing.assert_close(chunks[1], second, atol=1e-5, rtol=0)
    torch.testing.assert_close(documents, torch.stack([first[0], second[0]]), atol=1e-5, rtol=0)


def combined_by_hand(module: SmithModule, blocks: Tensor) -> Tensor:
    """g: the sum, mean or attended sum over the block vectors given."""
    config, weights = module.config, module.state_dict()
    if config.combination is Combination.SUM:
        return blocks.sum(0)
    if config.combination is Combination.MEAN:
        return blocks.mean(0)
    scores = []
    for block in blocks:
        projected = weights["attention.projection.weight"] @ block
        if config.variant is not Variant.PAPER:
            projected = torch.tanh(projected + weights["attention.projection.bias"])
        scores.append(weights["attention.context"] @ projected)
    return torch.stack(scores).softmax(0) @ blocks


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("combination", [Combination.SUM, Combination.MEAN, Combination.ATTENTION])
@torch.no_grad()
def test_combinations_follow_the_equations_of_variants(variant: Variant, combination: Combination, ids: Tensor) -> None:
    module = make_module(replace(TINY, variant=variant, combination=combination))
    blocks = padded_blocks(module, ids)[:3]
    together = torch.cat([blocks[:2], torch.ones(1, 16)])[None]
    documents, chunks = module.documents(together, torch.tensor([[True, True, False]]))
    rows = rows_by_hand(module, blocks[:2])
    torch.testing.assert_close(chunks[0, :2], torch.cat([blocks[:2], rows], 1) / math.sqrt(2), atol=1e-5, rtol=0)
    missing = block_by_hand(module, torch.zeros(12, dtype=torch.int64))
    read = torch.stack([*blocks[:2], missing, missing]) if variant is Variant.RELEASED else blocks[:2]
    combined = combined_by_hand(module, read)
    if variant is Variant.FIXED:
        combined = combined / combined.norm()
    expected = torch.cat([combined, rows[0]])
    torch.testing.assert_close(documents[0], expected / expected.norm(), atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "vocabulary", "n_parameters"),
    [
        (smith_of(), 30_522, 12_920_576),
        (smith_of(Variant.RELEASED), 30_522, 12_920_576 - 2 * 527_104),  # two layers less of
        # 4 * (256 * 256 + 256) of attention, 2 * (2 * 256) of norms, 2 * 256 * 512 + 512 + 256 of the dense layers
        (replace(match_bert(), sentence_layers=1), 1000, 8_842_752),
        (replace(smith_short(), sentence_layers=1), 1000, 20_173_824),
    ],
    ids=["smith", "released", "matchbert", "short"],
)
def test_the_number_of_parameters_is_that_of_the_paper(config: SmithConfig, vocabulary: int, n_parameters: int) -> None:
    assert sum(weights.numel() for weights in SmithModule(config, vocabulary).parameters()) == n_parameters


@torch.no_grad()
def test_weights_start_as_the_released_code_draws_them() -> None:
    module = SmithModule(smith_of(), 1000)
    words = module.sentence.bert.get_input_embeddings().weight
    assert float(words.abs().max()) <= 0.04
    assert float(words.std()) == pytest.approx(0.02 * 0.8796, rel=0.02)  # a normal cut at two deviations is narrower
    limit = math.sqrt(6 / 512)
    dense = module.sentence.dense
    for glorot in (dense.weight, module.heads[0].weight):
        assert limit * 0.99 < float(glorot.abs().max()) <= limit


SAME_SIZES = SmithConfig(
    block_tokens=12, width=32, sentence_layers=2, sentence_heads=4, sentence_ffn=64, sentence_positions=40
)
WORDS = "embeddings.word_embeddings.weight"


def weights_of(encoder: SmithEncoder) -> dict[str, torch.Tensor]:
    bert: Any = encoder.module.sentence.bert
    return dict(bert.state_dict())


def test_a_whole_sentence_encoder_is_taken_over(bert_folder: Path) -> None:
    own = weights_of(SmithEncoder.create(bert_folder, SAME_SIZES, device="cpu", sentence_encoder=bert_folder))
    for name, value in load_file(bert_folder / "model.safetensors").items():
        assert torch.equal(own[name], value[: len(own[name])]), name


def test_word_embeddings_alone_are_taken_over_from_a_folder_with_a_model(bert_folder: Path, tmp_path: Path) -> None:
    config = replace(SAME_SIZES, sentence_layers=1, sentence_ffn=16)
    plain = weights_of(SmithEncoder.create(bert_folder, config, device="cpu"))
    warm = weights_of(SmithEncoder.create(bert_folder, config, device="cpu", word_embeddings=bert_folder))
    assert torch.equal(warm.pop(WORDS), load_file(bert_folder / "model.safetensors")[WORDS])
    assert all(torch.equal(warm[name], plain[name]) for name in warm)
    with pytest.raises(EncoderError, match=f"^{tmp_path} cannot be loaded as a BERT: "):
        SmithEncoder.create(bert_folder, SAME_SIZES, device="cpu", word_embeddings=tmp_path)


def test_without_a_pooler_in_the_folder_the_new_one_stays_as_drawn(bert_folder: Path, tmp_path: Path) -> None:
    for file in bert_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    kept = {name: value for name, value in load_file(bert_folder / "model.safetensors").items() if "pooler" not in name}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    plain = weights_of(SmithEncoder.create(bert_folder, SAME_SIZES, device="cpu"))
    warm = weights_of(SmithEncoder.create(bert_folder, SAME_SIZES, device="cpu", sentence_encoder=tmp_path))
    assert torch.equal(warm["pooler.dense.weight"], plain["pooler.dense.weight"])
    assert torch.equal(warm[WORDS], kept[WORDS])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sentence_layers": 3},
            "does not have the layers of this encoder: encoder.layer.2.attention.output.LayerNorm.bias is only in one "
            "of the two; configure as many layers as it has",
        ),
        (
            {"sentence_ffn": 48},
            "encoder.layer.0.intermediate.dense.weight of {folder} has shape (64, 32), this encoder needs (48, 32); "
            "configure its sizes",
        ),
        (
            {"sentence_positions": 100},
            "embeddings.position_embeddings.weight of {folder} has shape (48, 32), this encoder needs (100, 32); "
            "configure its sizes",
        ),
    ],
)
def test_a_bert_of_other_sizes_is_refused(bert_folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EncoderError) as raised:
        SmithEncoder.create(bert_folder, replace(SAME_SIZES, **changes), device="cpu", sentence_encoder=bert_folder)
    assert str(raised.value).endswith(message.format(folder=bert_folder))
