"""Baselines over a transformer: MatchBERT, S-BERT (512 tokens), and siamese Longformer and BigBird."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from benchmarks.baselines.pair_model import PairTraining, Prepared, TrainedScorer, settings_of
from benchmarks.baselines.text_inputs import FirstTokens, first_tokens
from benchmarks.prepare import encoder_label
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.backbone.model_folder import quiet_transformers
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.backbone.weights import MINILM_NAME, resolve_backbone, tokenizer_sha256
from engine.errors import EncoderError

# Learning rate and weight decay of Jha et al. (2022); the schedule of Yang et al. (2020, arXiv:2004.12297).
TRANSFORMER_TRAINING = PairTraining(
    learning_rate=5e-5,
    warmup_share=0.1,
    decays=True,
    weight_decay=0.01,
    gradient_norm=1.0,
    pairs_at_once=8,
    mixed_precision=True,
)


@dataclass(frozen=True, slots=True)
class SBert512Config:
    """The BERT model. The paper uses `bert-base-uncased`; the default is the model that needs no network."""

    weights: str = MINILM_NAME  # a folder, a name on the hub, or this one
    max_tokens: int = 512  # special tokens counted


MATCHBERT_TOKENS = 256  # of a document; the length with the best result in the paper


def sbert_512(
    config: SBert512Config = SBert512Config(),
    training: PairTraining = TRANSFORMER_TRAINING,
    *,
    name: str = "s-bert-512",
    device: str | None = None,
) -> TrainedScorer[list[int]]:
    """S-BERT as a `PairScorer`: section 4.1.3 of Jha et al. (2022, TKDD; arXiv:2108.09190).

        y = tanh(W h_[CLS] + b),  logit = a cos(y_1, y_2) + c

    with BERT's own pooler; the paper states only that BERT is tuned and that vectors are compared by the
    cosine. With `MATCHBERT_TOKENS` this is MatchBERT (Yang et al. 2020, arXiv:2004.12297, section 3.2.1). As there,
    the tokens are read in one run, while `engine.encoders.smith.encoder` ends a block where a section ends.
    """

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[list[int]]:
        backbone = Backbone(resolve_backbone(config.weights), device=device, dtype=torch.float32)
        pooler = getattr(backbone.model, "pooler", None)
        if backbone.model.config.model_type != "bert" or pooler is None:
            raise EncoderError(
                f"{config.weights} is a {backbone.model.config.model_type}, S-BERT reads the pooler of a bert; "
                "give the folder of a BERT"
            )
        model = FirstTokens(backbone, pooler=pooler)
        return Prepared(
            model,
            lambda document: first_tokens(document, backbone, config.max_tokens),
            encoder=f"{encoder_label(config.weights)}@{backbone.sha256[:12]}",
        )

    settings = {**settings_of(config), "weights": encoder_label(config.weights)}
    return TrainedScorer(name, settings, training, prepare, device=device)


# Fields of the configuration below, and the names of the same fields in transformers.
_SIZES: Mapping[str, str] = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "ffn": "intermediate_size",
    "window": "attention_window",
    "block_size": "block_size",
    "random_blocks": "num_random_blocks",
}


class LongKind(StrEnum):
    """The kind of attention."""

    LONGFORMER = "longformer"  # a window around each token; the first token attends to all tokens
    BIGBIRD = "bigbird"  # neighbouring blocks, random blocks, the first and the last block


@dataclass(frozen=True, slots=True)
class SiameseLongConfig:
    """Sizes, by default those of longformer-base-4096, and with `bigbird` those of bigbird-roberta-base.

    The sizes apply to random parameters; pretrained ones have their own. Both published models were pretrained:
    random parameters of these sizes learn little from a few thousand pairs.
    """

    kind: LongKind = LongKind.LONGFORMER
    weights: str = ""  # a folder or a name on the hub, such as allenai/longformer-base-4096; "" for random parameters
    tokenizer: str = MINILM_NAME  # model with the tokenizer for random parameters
    max_tokens: int = 4096  # special tokens counted
    pooling: Pooling = Pooling.CLS  # our choice; not in the papers
    layers: int = 12
    width: int = 768
    heads: int = 12
    ffn: int = 3072
    window: int = 512  # of Longformer, in tokens; half on either side
    block_size: int = 64  # of BigBird
    random_blocks: int = 3  # of BigBird
    checkpoint_gradients: bool = True  # recompute layers for the gradient, as 4,096 tokens need much memory


def siamese_long(
    config: SiameseLongConfig = SiameseLongConfig(),
    training: PairTraining = TRANSFORMER_TRAINING,
    *,
    device: str | None = None,
) -> TrainedScorer[list[int]]:
    """A Siamese Longformer (Beltagy et al. 2020, arXiv:2004.05150) or BigBird (Zaheer et al. 2020) as a `PairScorer`.

    The first token is Longformer's global one; see `engine.encoders.backbone.long_attention` for how each model is
    read. Vectors are compared by cosine, as in section 4.1.3 of Jha et al. (2022).
    """

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[list[int]]:
        made = given_backbone if config.weights else random_backbone
        backbone = made(config, device=device)
        backbone.checkpoint_gradients(config.checkpoint_gradients)
        return Prepared(
            FirstTokens(backbone),
            lambda document: first_tokens(document, backbone, config.max_tokens),
            encoder=f"{encoder_label(config.weights)}@{backbone.sha256[:12]}" if config.weights else "",
            settings=_sizes(backbone) if config.weights else _tokenizer(config),
        )

    if config.kind is LongKind.BIGBIRD:
        # BigBird's code in transformers 5.23 scatters numbers of one precision into a tensor of another.
        training = replace(training, mixed_precision=False)
    return TrainedScorer(f"s-{config.kind}", _settings(config), training, prepare, device=device)


def _settings(config: SiameseLongConfig) -> Settings:
    """The settings of a configuration; without sizes and tokenizer for pretrained parameters, which have their own."""
    own = settings_of(config) | {"weights": encoder_label(config.weights) or "random"}
    left_out = (*_SIZES, "tokenizer") if config.weights else ("tokenizer",)
    return {name: value for name, value in own.items() if name not in left_out}


def _sizes(backbone: Backbone) -> Settings:
    """The sizes in the configuration of a pretrained model; sizes that its kind does not have are left out."""
    found = {name: getattr(backbone.model.config, key, None) for name, key in _SIZES.items()}
    found["window"] = found["window"][0] if isinstance(found["window"], list) else found["window"]
    return {name: value for name, value in found.items() if value is not None}


def _tokenizer(config: SiameseLongConfig) -> Settings:
    folder = resolve_backbone(config.tokenizer)
    return {"tokenizer": f"{encoder_label(config.tokenizer)}@{tokenizer_sha256(folder)[:12]}"}


def given_backbone(config: SiameseLongConfig, *, device: str | None = None) -> Backbone:
    """The pretrained backbone that the configuration names.

    Raises:
        EncoderError: it cannot be found or loaded.
    """
    return Backbone(resolve_backbone(config.weights), device=device, dtype=torch.float32, pooling=config.pooling)


def random_backbone(config: SiameseLongConfig, *, device: str | None = None) -> Backbone:
    """A backbone of random parameters from torch's generator, saved and loaded like any other."""
    tokenizer = Tokenizer(resolve_backbone(config.tokenizer))
    model = long_model(config, vocabulary_size=tokenizer.vocabulary_size, pad_id=tokenizer.pad_id)
    with TemporaryDirectory() as folder, quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.fast.model_max_length = config.max_tokens  # the tokenizer's own model reads fewer
        tokenizer.fast.save_pretrained(folder)
        return Backbone(Path(folder), device=device, dtype=torch.float32, pooling=config.pooling)


def long_model(config: SiameseLongConfig, *, vocabulary_size: int, pad_id: int) -> Any:  # noqa: ANN401
    """A model of transformers with random parameters."""
    sizes = {
        "vocab_size": vocabulary_size,
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.ffn,
        "pad_token_id": pad_id,
    }
    if config.kind is LongKind.BIGBIRD:
        blocks = {"block_size": config.block_size, "num_random_blocks": config.random_blocks}
        return BigBirdModel(BigBirdConfig(**sizes, **blocks, max_position_embeddings=config.max_tokens))
    return LongformerModel(
        LongformerConfig(
            **sizes,
            attention_window=[config.window] * config.layers,
            # Positions are counted from the padding id + 1.
            max_position_embeddings=config.max_tokens + pad_id + 1,
            type_vocab_size=1,
        )
    )
