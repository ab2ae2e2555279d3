"""CoLDE on disk: precision, fingerprints, damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.encoders.colde.config import Freeze
from engine.encoders.colde.encoder import LAYERS_FILE, ColdeEncoder
from engine.encoders.colde.sections import place
from engine.encoders.encoder import Pooling
from engine.encoders.files import CONFIG_FILE
from engine.encoders.loading import load_trainable
from engine.errors import EncoderError
from tests.encoders.tiny import COLDE, tiny_colde
from tests.fakes import make_document


@pytest.fixture(scope="module")
def encoder(bert_folder: Path) -> ColdeEncoder:
    return tiny_colde(bert_folder)


def test_a_seed_makes_the_same_encoder_and_leaves_torch_alone(bert_folder: Path) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    one, same, other = tiny_colde(bert_folder, seed=1), tiny_colde(bert_folder, seed=1), tiny_colde(bert_folder, seed=2)
    assert torch.equal(before, torch.get_rng_state())
    assert one.fingerprint == same.fingerprint != other.fingerprint


def trained_a_step(encoder: ColdeEncoder) -> ColdeEncoder:
    encoder.embed_sections([place([([5, 6, 7], [8]), ([14, 15], [16, 17])])])[0, 0].backward()
    torch.optim.SGD(encoder.module.parameters(), lr=0.1).step()
    return encoder


def test_training_changes_the_fingerprint_and_is_saved(bert_folder: Path, tmp_path: Path) -> None:
    encoder = tiny_colde(bert_folder)
    before = encoder.fingerprint
    trained_a_step(encoder).save_pretrained(tmp_path)
    assert encoder.fingerprint != before
    loaded = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    assert loaded.fingerprint == encoder.fingerprint
    document = make_document("d", "the old fox " * 20)
    assert np.array_equal(loaded.encode([document])[0].chunks, encoder.encode([document])[0].chunks)


def test_a_lower_precision_keeps_the_fingerprint_until_it_is_trained(bert_folder: Path, tmp_path: Path) -> None:
    encoder = tiny_colde(bert_folder)
    encoder.save_pretrained(tmp_path / "one")
    half = load_trainable(str(tmp_path / "one"), device="cpu", dtype=torch.bfloat16)
    assert isinstance(half, ColdeEncoder) and half.backbone.model.dtype == torch.bfloat16
    assert half.fingerprint == encoder.fingerprint
    half.save_pretrained(tmp_path / "two")  # the files, not what memory has rounded
    assert load_trainable(str(tmp_path / "two"), device="cpu").fingerprint == encoder.fingerprint
    assert trained_a_step(half).fingerprint != encoder.fingerprint


def test_weights_can_be_written_at_another_precision(encoder: ColdeEncoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path, dtype=torch.bfloat16)
    assert load_file(tmp_path / LAYERS_FILE)["projection.weight"].dtype == torch.bfloat16
    assert load_file(tmp_path / "model.safetensors")["pooler.dense.weight"].dtype == torch.bfloat16
    loaded = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    document = make_document("d", "the old fox " * 20)
    assert float(loaded.encode([document])[0].document @ encoder.encode([document])[0].document) > 0.99


def test_the_fingerprint_depends_on_settings_that_change_vectors_and_on_no_others(bert_folder: Path) -> None:
    same = [
        replace(COLDE, temperature=0.1),
        replace(COLDE, freeze=Freeze.ALL_BUT_LAST),
        replace(COLDE, max_chunks=9),
        replace(COLDE, dropout=0.2),
    ]
    others = [replace(COLDE, chunk_tokens=11), replace(COLDE, heads=2), replace(COLDE, pooling=Pooling.MEAN)]
    own = tiny_colde(bert_folder).fingerprint
    assert {tiny_colde(bert_folder, config).fingerprint for config in same} == {own}
    assert own not in {tiny_colde(bert_folder, config).fingerprint for config in others}


def test_a_chunk_is_cut_down_to_what_the_backbone_reads(bert_folder: Path) -> None:
    assert tiny_colde(bert_folder, replace(COLDE, chunk_tokens=510)).chunk_tokens == 46


@pytest.mark.parametrize("content", [{"heads": "4"}, {"variant": "best"}, {"dropout": None}])
def test_a_damaged_configuration_is_refused(encoder: ColdeEncoder, tmp_path: Path, content: dict[str, Any]) -> None:
    encoder.save_pretrained(tmp_path)
    config = json.loads((tmp_path / CONFIG_FILE).read_text())
    (tmp_path / CONFIG_FILE).write_text(json.dumps({**config, **content}))
    with pytest.raises(EncoderError, match=f"{CONFIG_FILE}: {next(iter(content))} .* save the encoder again$"):
        load_trainable(str(tmp_path), device="cpu")


def test_layers_that_do_not_fit_are_refused(encoder: ColdeEncoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    config = json.loads((tmp_path / CONFIG_FILE).read_text())
    (tmp_path / CONFIG_FILE).write_text(json.dumps({**config, "lstm_width": 17}))
    with pytest.raises(EncoderError) as raised:
        load_trainable(str(tmp_path), device="cpu")
    assert str(raised.value) == (
        f"{tmp_path / LAYERS_FILE} has lstm.bias_hh_l0 of shape (64,), the other files need (68,); "
        "save the encoder again"
    )
    (tmp_path / LAYERS_FILE).unlink()
    with pytest.raises(EncoderError, match=f"{LAYERS_FILE} cannot be read .*; save the encoder again$"):
        load_trainable(str(tmp_path), device="cpu")


def test_the_card_and_the_layers_are_written(encoder: ColdeEncoder, tmp_path: Path) -> None:
    encoder.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "`fixed`: chunks of 12 tokens" in card and "Vectors are 24 wide" in card
    assert load_file(tmp_path / LAYERS_FILE).keys() == encoder.layers.state_dict().keys()
