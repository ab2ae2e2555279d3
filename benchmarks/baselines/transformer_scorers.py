"""Baselines over a transformer: MatchBERT, S-BERT (512 tokens), and siamese Longformer and BigBird."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from benchmarks.baselines.pair_model import PairTraining, Prepared, TrainedScorer, settings_of
from benchmarks.baselines.text_inputs import FirstTokens, first_tokens
from benchmarks.systems import Settings, encoder_label
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import Pooling
from engine.encoders.files import MINILM_NAME, resolve_backbone, weights_sha256
from engine.errors import EncoderError
from engine.text.document import Document
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone

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


@dataclass(frozen=True, slots=True)
class SiameseLongConfig:
    """A pretrained model, or a BERT that is given long attention; sizes are those of the published models."""

    attention: LongAttention = LongAttention.LONGFORMER
    weights: str = ""  # a folder or a name on the hub, such as allenai/longformer-base-4096; "" to begin with `bert`
    bert: str = MINILM_NAME  # a folder, a name on the hub, or this one
    sizes: LongSizes = field(default_factory=LongSizes)  # of a model that begins with `bert`
    pooling: Pooling = Pooling.CLS  # our choice; not in the papers
    checkpoint_gradients: bool = True  # recompute layers for the gradient, as 4,096 tokens need much memory


def siamese_long(
    config: SiameseLongConfig = SiameseLongConfig(),
    training: PairTraining = TRANSFORMER_TRAINING,
    *,
    device: str | None = None,
) -> TrainedScorer[list[int]]:
    """A Siamese Longformer (Beltagy et al. 2020, arXiv:2004.05150) or BigBird (Zaheer et al. 2020) as a `PairScorer`.

    The first token is Longformer's global one; see `engine.encoders.backbone.long_attention` for how each model is
    read. Vectors are compared by cosine, as in section 4.1.3 of Jha et al. (2022). Without pretrained parameters a
    model begins as `indexer.training.long_encoder` makes it.
    """

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[list[int]]:
        backbone = _long_backbone(config, device)
        backbone.checkpoint_gradients(config.checkpoint_gradients)
        max_tokens = backbone.max_tokens + backbone.tokenizer.n_special
        start = resolve_backbone(config.weights or config.bert)
        return Prepared(
            FirstTokens(backbone),
            lambda document: first_tokens(document, backbone, max_tokens),
            encoder=f"{encoder_label(config.weights or config.bert)}@{weights_sha256(start)[:12]}",
            settings={"max_tokens": max_tokens},
        )

    if config.attention is LongAttention.BIGBIRD:
        # BigBird's code in transformers 5.23 scatters numbers of one precision into a tensor of another.
        training = replace(training, mixed_precision=False)
    return TrainedScorer(f"s-{config.attention}", _settings(config), training, prepare, device=device)


def _settings(config: SiameseLongConfig) -> Settings:
    """The settings of a configuration; pretrained parameters have their own sizes."""
    own = settings_of(config) | {"weights": encoder_label(config.weights), "bert": encoder_label(config.bert)}
    if not config.weights:
        return own
    return {name: value for name, value in own.items() if name != "bert" and not name.startswith("sizes_")}


def _long_backbone(config: SiameseLongConfig, device: str | None) -> Backbone:
    if config.weights:
        folder = resolve_backbone(config.weights)
        return Backbone(folder, device=device, dtype=torch.float32, pooling=config.pooling)
    bert = resolve_backbone(config.bert)
    return long_backbone(bert, config.attention, config.sizes, device=device, pooling=config.pooling)
