"""The encoder that training starts from: its dropout and attention are set, and nothing else is changed."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from engine.encoders.mean import MeanEncoder
from indexer.training.start import Start, set_dropout, starting_encoder


def begun(start: Start) -> MeanEncoder:
    made = starting_encoder(start, (), seed=0, device="cpu", is_resumed=False, log=lambda line: None)
    assert isinstance(made.encoder, MeanEncoder)
    return made.encoder


def test_without_dropout_training_computes_the_vectors_of_encoding(bert_folder: Path) -> None:
    encoder = begun(Start(str(bert_folder), dropout=0.0))
    sequences = [[7, 8, 9, 10], [11, 12]]
    read = encoder.backbone.embed(sequences, 64)
    encoder.module.train()
    torch.testing.assert_close(encoder.backbone.embed(sequences, 64), read)


def test_dropout_is_that_of_the_saved_encoder_by_default(bert_folder: Path) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.1}
    set_dropout(encoder.module, 0.3)
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.3}


def test_plain_attention_gives_the_same_vectors(bert_folder: Path, mean_encoder: MeanEncoder) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert encoder.backbone.model.config._attn_implementation == "eager"
    sequences = [[7, 8, 9, 10, 11], [12], [13, 14]]
    found, expected = encoder.backbone.encode(sequences, 64), mean_encoder.backbone.encode(sequences, 64)
    torch.testing.assert_close(torch.from_numpy(found), torch.from_numpy(expected), atol=1e-5, rtol=0)
