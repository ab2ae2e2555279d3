"""Encoders of every kind over the BERT of the tests, whose random weights distinguish documents; tampered folders."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.encoders.backbone import Backbone, inference
from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import Encoder, Pooling, Variant, Vectors
from engine.encoders.loading import load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import Combination, SmithConfig
from engine.encoders.tde import TdeConfig, TdeEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from tests.fakes import make_document

TEXTS = [
    "The quick brown fox jumps over the lazy dog. A dark house by the river bank! Search finds it.",
    "A model finds the vector of every chunk. The search shows every score of a query and its target document.",
    "The young dog was brown and the fox red. One two three four five six seven eight nine ten.",
]

SMITH = SmithConfig(
    block_tokens=12,
    max_blocks=4,
    width=32,
    sentence_layers=2,
    sentence_heads=4,
    sentence_ffn=64,
    sentence_positions=16,
    document_layers=2,
    document_ffn=64,
    document_positions=4,
)
SMITH_PAPER = replace(SMITH, variant=Variant.PAPER)
SMITH_RELEASED = replace(SMITH, variant=Variant.RELEASED)
SMITH_SHORT = replace(SMITH, block_tokens=40, max_blocks=2, sentence_positions=40, document_layers=1)
MATCHBERT = replace(SMITH, max_blocks=1, document_layers=0)
COLDE = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24)
TDE = TdeConfig(sentence_tokens=20, n_topics=3, topic_width=6, topic_hidden_width=8, min_df=1, max_df=1.0)


def tiny_mean(folder: Path, *, pooling: Pooling = Pooling.MEAN) -> MeanEncoder:
    """A mean encoder with the weights of `folder`."""
    return MeanEncoder(Backbone(folder, device="cpu", dtype=torch.float32, pooling=pooling), window_tokens=12)


def tiny_smith(folder: Path, config: SmithConfig = SMITH, *, seed: int = 0) -> SmithEncoder:
    """A SMITH with weights ten times the initial ones, with which all vectors would be nearly alike."""
    encoder = SmithEncoder.create(folder, config, seed=seed, device="cpu")
    with torch.no_grad():
        for weights in encoder.module.parameters():
            if weights.dim() == 2:
                weights.mul_(10)
    return encoder


def encoded(backbone: Backbone, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
    """The vectors of token sequences, without gradients."""
    with inference(backbone.model):
        rows: Vectors = backbone.embed(sequences, token_budget).numpy()
    return rows


def tiny_colde(folder: Path, config: ColdeConfig = COLDE, *, seed: int = 0, trained_chunks: int = 20) -> ColdeEncoder:
    """A CoLDE that has seen some chunk numbers in training, and distinguishes them."""
    encoder = ColdeEncoder.create(folder, config, seed=seed, device="cpu", dtype=torch.float32)
    positions = encoder.layers.positions
    if positions is not None:
        positions.largest.fill_(trained_chunks - 1)
        with torch.no_grad():  # at 0.02 numbers hardly show beside the words of a random backbone
            positions.sections.weight.mul_(50)
            positions.chunks.weight.mul_(50)
    return encoder


def tiny_tde(folder: Path, config: TdeConfig = TDE, *, seed: int = 0) -> TdeEncoder:
    """A TDE with enlarged weights of topics: with the initial ones all texts have nearly the same topics."""
    encoder = TdeEncoder.create(folder, TEXTS, config, seed=seed, device="cpu")
    if encoder.module.topics:
        with torch.no_grad():
            encoder.module.topics.model.word_layer.weight.mul_(20)
            encoder.module.topics.model.mean.weight.mul_(5)
    return encoder


def _smiths() -> dict[str, SmithConfig]:
    named = {}
    for config in (SMITH, SMITH_PAPER, SMITH_RELEASED):
        for combination in Combination:
            named[f"smith {config.variant} {combination}"] = replace(config, combination=combination)
    for config in (MATCHBERT, replace(MATCHBERT, variant=Variant.PAPER)):
        named[f"matchbert {config.variant}"] = config
    return {**named, "smith-short": SMITH_SHORT}


_COLDES = {
    "colde fixed": COLDE,
    "colde paper": replace(COLDE, variant=Variant.PAPER),
    "colde released": replace(COLDE, variant=Variant.RELEASED),
    "colde mean": replace(COLDE, pooling=Pooling.MEAN),
    "colde without lstm": replace(COLDE, without_lstm=True),
    "colde without positions": replace(COLDE, without_positions=True),
    "colde released without positions": replace(COLDE, variant=Variant.RELEASED, without_positions=True),
}
_TDES = {
    "tde fixed": TDE,
    "tde paper": replace(TDE, variant=Variant.PAPER, pooling=Pooling.CLS),
    "tde without topics": replace(TDE, n_topics=0),
}
ENCODERS: dict[str, Callable[[Path], TrainableEncoder]] = {
    "mean": tiny_mean,
    "mean cls": lambda folder: tiny_mean(folder, pooling=Pooling.CLS),
    **{name: lambda folder, config=config: tiny_smith(folder, config) for name, config in _smiths().items()},
    **{name: lambda folder, config=config: tiny_colde(folder, config) for name, config in _COLDES.items()},
    **{name: lambda folder, config=config: tiny_tde(folder, config) for name, config in _TDES.items()},
}
KINDS: dict[str, Callable[[Path], TrainableEncoder]] = {
    "mean": tiny_mean,
    "smith": tiny_smith,
    "colde": tiny_colde,
    "tde": tiny_tde,
}

Take = Callable[[str], Path]  # a kind, or "backbone", to a copy of its folder


def load(folder: Path) -> Encoder:
    return load_trainable(str(folder), device="cpu", dtype=torch.float32)


def tamper(file: Path, **values: Any) -> None:  # noqa: ANN401
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**content, **values}))


def assert_same_vectors(one: Path, other: Path) -> None:
    document = make_document("d", "the quick brown fox jumps over the lazy dog. " * 9)
    vectors = [load(folder).encode([document])[0].chunks for folder in (one, other)]
    assert np.array_equal(*vectors)
