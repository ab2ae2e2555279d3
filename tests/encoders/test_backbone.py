"""Loading of a backbone; its vectors are compared with the plain forward pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertForMaskedLM

from engine.encoders.backbone.backbone import Backbone
from engine.errors import EncoderError


@pytest.fixture(scope="module")
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def test_a_vector_is_the_unit_mean_of_the_hidden_states(backbone: Backbone, bert_folder: Path) -> None:
    ids = backbone.tokenizer.tokenize(["the quick brown fox"])[0][0]
    full = torch.tensor([[*backbone.tokenizer.prefix, *ids, *backbone.tokenizer.suffix]])
    with torch.inference_mode():
        mean = AutoModel.from_pretrained(bert_folder).eval()(full)[0][0].mean(0)
    np.testing.assert_allclose(backbone.encode([ids], 64)[0], (mean / mean.norm()).numpy(), atol=1e-6)


@pytest.mark.parametrize("budget", [1, 20, 60, 100_000])
def test_padding_and_batching_change_nothing_and_order_is_kept(backbone: Backbone, budget: int) -> None:
    texts = ["fox", "the old river bank", "a", "one two three four five six seven " * 4, "dog and fox"]
    sequences = [ids for ids, _ in backbone.tokenizer.tokenize(texts)]
    alone = np.concatenate([backbone.encode([sequence], 64) for sequence in sequences])
    np.testing.assert_allclose(backbone.encode(sequences, budget), alone, atol=2e-6)


def test_no_sequences_give_no_vectors(backbone: Backbone) -> None:
    assert backbone.encode([], 64).shape == (0, 32)
    assert backbone.tokenizer.tokenize([]) == []


def test_offsets_point_at_the_words_whatever_stands_between(backbone: Backbone) -> None:
    text = "  Old\u00a0 FOX\n\nriver."
    _, offsets = backbone.tokenizer.tokenize([text])[0]
    assert [text[start:stop] for start, stop in offsets] == ["Old", "FOX", "river", "."]


def test_long_texts_are_tokenized_whole(backbone: Backbone) -> None:
    assert len(backbone.tokenizer.tokenize(["fox " * 5000])[0][0]) == 5000


def test_special_tokens_are_subtracted_from_the_window(backbone: Backbone) -> None:
    assert (len(backbone.tokenizer.prefix), len(backbone.tokenizer.suffix), backbone.max_tokens, backbone.width) == (
        1,
        1,
        46,
        32,
    )


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError) as raised:
        Backbone(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} holds no *.safetensors; other weight formats are not read: convert them first"
    )


def _copy(bert_folder: Path, folder: Path) -> Path:
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00 garbage", b"{}"])
def test_a_damaged_file_is_an_encoder_error(bert_folder: Path, tmp_path: Path, file: str, content: bytes) -> None:
    (_copy(bert_folder, tmp_path) / file).write_bytes(content)
    with pytest.raises(EncoderError, match="cannot be loaded as an encoder backbone"):
        Backbone(tmp_path, device="cpu", dtype=torch.float32)


def test_saving_writes_what_was_loaded(backbone: Backbone, tmp_path: Path) -> None:
    backbone.save_pretrained(tmp_path / "new" / "folder")
    saved = Backbone(tmp_path / "new" / "folder", device="cpu", dtype=torch.float32)
    ids = backbone.tokenizer.tokenize(["the old fox"])[0][0]
    assert saved.sha256 == backbone.sha256
    assert np.array_equal(saved.encode([ids], 64), backbone.encode([ids], 64))


def test_a_masked_language_model_is_a_backbone_without_its_head(
    backbone: Backbone, bert_folder: Path, tmp_path: Path
) -> None:
    model = BertForMaskedLM(backbone.model.config)
    model.bert.load_state_dict(backbone.model.state_dict(), strict=False)  # it has no pooler
    backbone.tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    ids = backbone.tokenizer.tokenize(["the old fox"])[0][0]
    found = Backbone(tmp_path, device="cpu", dtype=torch.float32).encode([ids], 64)
    np.testing.assert_array_equal(found, backbone.encode([ids], 64))


def test_rounding_leaves_buffers_alone(bert_folder: Path) -> None:
    rounded = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    rounded.model.register_buffer("frequencies", torch.ones(2))
    rounded.round_to(torch.bfloat16)
    assert {weight.dtype for weight in rounded.model.parameters()} == {torch.bfloat16} == {rounded.dtype}
    assert rounded.model.frequencies.dtype is torch.float32
    assert rounded.loaded.are_in(rounded.model)
