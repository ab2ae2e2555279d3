"""The neural baselines by name, each as a `PairScorer` that reads texts and is trained on pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import torch

from benchmarks.baselines.hierarchical import HanConfig, SmashConfig, han, smash
from benchmarks.baselines.matchers import ArcIConfig, DssmConfig, arc_i, dssm
from benchmarks.baselines.pair_model import PairTraining, Prepared, TrainedScorer, settings_of
from benchmarks.baselines.re2 import Re2Config, re2
from benchmarks.baselines.text_inputs import FirstTokens, WordConfig, first_tokens
from benchmarks.pair_scorer import SMALL, PairScorer
from benchmarks.systems import Settings, encoder_label
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import Pooling
from engine.encoders.files import MINILM_NAME, resolve_backbone, weights_sha256
from engine.errors import EncoderError, TrainingError
from engine.text.document import Document
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone

WordsConfig: TypeAlias = ArcIConfig | HanConfig | SmashConfig | Re2Config


@dataclass(frozen=True, slots=True)
class Given:
    """The pretrained parameters of a user. By default long models begin with `bert`."""

    bert: str = MINILM_NAME
    longformer: str = ""
    bigbird: str = ""
    device: str | None = None  # by default a GPU if torch finds one


def neural_scorer(name: str, *, given: Given = Given(), is_small: bool = False) -> PairScorer:
    """Make a baseline."""
    if name not in _MAKERS:
        raise TrainingError(f"there is no baseline {name!r}; take one of {', '.join(NEURAL_SCORERS)}")
    made = _MAKERS[name](given, is_small)
    if is_small:
        made.settings[SMALL] = True
    return made


def _dssm(given: Given, is_small: bool) -> PairScorer:
    config = DssmConfig((64, 64, 32), 5_000) if is_small else DssmConfig()
    return dssm(config, device=given.device)


def _of_words(
    make: Callable[..., PairScorer], config: WordsConfig, small: Mapping[str, Any], given: Given, is_small: bool
) -> PairScorer:
    """A baseline over word vectors; `small` has its sizes for a first look."""
    config = replace(config, words=_words(config.words, is_small))
    if is_small:
        config = replace(config, max_words=_SMALL_WORDS, **small)
    return make(config, device=given.device)


def _bert(name: str, max_tokens: int, given: Given, is_small: bool) -> PairScorer:
    config = SBert512Config(given.bert, _SMALL_TOKENS if is_small else max_tokens)
    return sbert_512(config, name=name, device=given.device)


def _siamese_long(attention: LongAttention, given: Given, is_small: bool) -> PairScorer:
    weights = given.longformer if attention is LongAttention.LONGFORMER else given.bigbird
    sizes = LongSizes(max_tokens=256, window=32, block_tokens=16, random_blocks=1) if is_small else LongSizes()
    return siamese_long(SiameseLongConfig(attention, weights, given.bert, sizes), device=given.device)


def _words(config: WordConfig, is_small: bool) -> WordConfig:
    return replace(config, width=32, min_count=2, epochs=1) if is_small else config


MATCHBERT_TOKENS = 256  # of a document; the length with the best result in the paper
_SMALL_WORDS, _SMALL_TOKENS = 200, 64
_MAKERS: Mapping[str, Callable[[Given, bool], PairScorer]] = {
    "dssm": _dssm,
    "arc-i": partial(_of_words, arc_i, ArcIConfig(), {"features": 32}),
    "han": partial(_of_words, han, HanConfig(), {"width": 16, "attention_width": 32}),
    "smash": partial(_of_words, smash, SmashConfig(), {"width": 16, "attention_width": 16}),
    "re2": partial(_of_words, re2, Re2Config(), {"width": 32}),
    "matchbert": partial(_bert, "matchbert", MATCHBERT_TOKENS),
    "s-bert-512": partial(_bert, "s-bert-512", 512),
    "s-longformer": partial(_siamese_long, LongAttention.LONGFORMER),
    "s-bigbird": partial(_siamese_long, LongAttention.BIGBIRD),
}
NEURAL_SCORERS = tuple(_MAKERS)


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
