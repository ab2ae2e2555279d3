from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.shared_weights import peer_config, token_encoder, token_label
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from tests.encoders.tiny import tiny_smith


def test_a_backbone_is_shared_as_it_is(bert_folder: Path) -> None:
    config = peer_config(str(bert_folder), dtype="float32", threads=2)
    assert (config.backbone, config.pooling, config.max_tokens, config.threads) == (bert_folder, "mean", 48, 2)
    assert (config.dtype, config.late_interaction, config.n_special, config.width) == ("float32", None, 2, 32)
    assert config.label.startswith("bert@")


def test_a_saved_mean_encoder_is_shared_with_its_pooling(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    mean_encoder.save_pretrained(tmp_path / "saved")
    assert peer_config(str(tmp_path / "saved"), dtype="same", threads=1).pooling == "mean"


def test_layers_that_no_peer_has_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    tiny_smith(bert_folder).save_pretrained(tmp_path / "smith")
    with pytest.raises(EncoderError, match="is of the kind 'smith', whose layers no peer can load; peers share"):
        peer_config(str(tmp_path / "smith"), dtype="same", threads=1)


def test_a_given_late_interaction_model_is_read_back(config: PeerConfig, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    own = token_encoder(config, 24)
    own.save_pretrained(str(tmp_path / "given"))
    given = token_encoder(replace(config, late_interaction=tmp_path / "given"), 512)
    assert given.max_seq_length == 24
    assert (given.encode_query(["a dog"])[0] == own.encode_query(["a dog"])[0]).all()


def test_a_given_model_is_named_by_its_folder_and_weights(config: PeerConfig, tmp_path: Path) -> None:
    assert token_label(config) == config.label
    labels = []
    for number in (0, 1):
        folder = tmp_path / str(number) / "given"
        (folder / "1_Dense").mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"same")
        (folder / "1_Dense" / "model.safetensors").write_bytes(b"%d" % number)
        labels.append(token_label(replace(config, late_interaction=folder)))
    assert labels[0].startswith("given@") and labels[0] != labels[1]


def test_folders_with_pickled_weights_or_without_a_model_are_refused(config: PeerConfig, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    given = replace(config, late_interaction=tmp_path)
    with pytest.raises(EncoderError, match="is no late-interaction model"):
        token_encoder(given, 512)
    (tmp_path / "1_Dense").mkdir()
    (tmp_path / "1_Dense" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(EncoderError, match=r"is not a folder of safetensors \(pytorch_model.bin\); save the model"):
        token_encoder(given, 512)
