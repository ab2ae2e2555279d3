from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.shared_weights import peer_config
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from tests.encoders.tiny import tiny_smith


def test_a_backbone_is_shared_as_it_is(bert_folder: Path) -> None:
    config = peer_config(str(bert_folder), dtype="float32", threads=2)
    assert (config.backbone, config.pooling, config.max_tokens, config.threads) == (bert_folder, "mean", 48, 2)
    assert (config.dtype, config.n_special, config.width) == ("float32", 2, 32)
    assert config.label.startswith("bert@")


def test_a_saved_mean_encoder_is_shared_with_its_pooling(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    mean_encoder.save_pretrained(tmp_path / "saved")
    assert peer_config(str(tmp_path / "saved"), dtype="same", threads=1).pooling == "mean"


def test_layers_that_no_peer_has_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    tiny_smith(bert_folder).save_pretrained(tmp_path / "smith")
    with pytest.raises(EncoderError, match="is of the kind 'smith', whose layers no peer can load; peers share"):
        peer_config(str(tmp_path / "smith"), dtype="same", threads=1)
