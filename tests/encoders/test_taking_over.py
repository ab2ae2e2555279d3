"""Weights of the folder of a BERT are copied into a new SMITH."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.encoders.smith.config import SmithConfig
from engine.encoders.smith.encoder import SmithEncoder
from engine.errors import EncoderError

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


def test_word_embeddings_alone_are_taken_over(bert_folder: Path) -> None:
    config = replace(SAME_SIZES, sentence_layers=1, sentence_ffn=16)
    plain = weights_of(SmithEncoder.create(bert_folder, config, device="cpu"))
    warm = weights_of(SmithEncoder.create(bert_folder, config, device="cpu", word_embeddings=bert_folder))
    assert torch.equal(warm.pop(WORDS), load_file(bert_folder / "model.safetensors")[WORDS])
    assert all(torch.equal(warm[name], plain[name]) for name in warm)


def test_without_a_pooler_in_the_folder_the_new_one_keeps_its_initial_weights(
    bert_folder: Path, tmp_path: Path
) -> None:
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


def test_a_folder_without_a_model_is_refused(bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=f"^{tmp_path} cannot be loaded as a BERT: "):
        SmithEncoder.create(bert_folder, SAME_SIZES, device="cpu", word_embeddings=tmp_path)
