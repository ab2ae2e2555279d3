"""The neural baselines of the papers by name, each as a `PairScorer` that is trained on pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from benchmarks.pairs.inputs import (
    count_trigrams,
    count_words,
    frequent_trigrams,
    make_word_table,
    read_words,
)
from benchmarks.pairs.pair_model import (
    CosineHead,
    PairModel,
    PairTraining,
    Prepared,
    SiameseModel,
    model_scorer,
    settings_of,
)
from benchmarks.pairs.re2 import Re2, Re2Config
from benchmarks.pairs.scoring import PairScorer
from benchmarks.pairs.siamese import ArcI, ArcIConfig, Dssm, DssmConfig, Han, HanConfig, Smash, SmashConfig
from benchmarks.systems import Settings, encoder_label
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import Pooling
from engine.encoders.files import resolve_backbone, weights_sha256
from engine.errors import EncoderError
from engine.text.document import Document
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone

WordsConfig: TypeAlias = ArcIConfig | HanConfig | SmashConfig | Re2Config
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
MATCHBERT_TOKENS = 256  # of a document; the length with the best result in the paper
_FEW_AT_ONCE = {"smash": 16, "re2": 8}
_WORD_MODELS: Mapping[str, tuple[Callable[[Any, nn.Embedding], PairModel[Any]], WordsConfig]] = {
    "arc-i": (ArcI, ArcIConfig()),
    "han": (Han, HanConfig()),
    "smash": (Smash, SmashConfig()),
    "re2": (Re2, Re2Config()),  # the learning rate of the paper falls over millions of pairs; here it is constant
}
NEURAL = ("dssm", *_WORD_MODELS, "matchbert", "s-bert-512", "s-longformer", "s-bigbird")


def neural_scorer(name: str, *, bert: str, device: str | None = None) -> PairScorer:
    """A baseline of `NEURAL`; those over tokens begin with the parameters of `bert`."""
    if name == "dssm":
        return dssm(device=device)
    if name in _WORD_MODELS:
        training = PairTraining(pairs_at_once=_FEW_AT_ONCE.get(name, PairTraining().pairs_at_once))
        return word_scorer(name, _WORD_MODELS[name][1], training, device=device)
    if name.startswith("s-") and name != "s-bert-512":
        return siamese_long(SiameseLongConfig(LongAttention(name.removeprefix("s-")), bert), device=device)
    return sbert(name, bert, MATCHBERT_TOKENS if name == "matchbert" else 512, device=device)


def dssm(
    config: DssmConfig = DssmConfig(),  # noqa: B008
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> PairScorer:
    """DSSM over the frequent trigrams of the documents of train."""

    def prepare(documents: Mapping[str, Document], _seed: int) -> Prepared[Any]:
        words = count_words(documents.values())
        ids = frequent_trigrams(words, min_count=config.min_count, most=config.max_trigrams)
        return Prepared(Dssm(config, len(ids)), lambda document: count_trigrams(document, ids))

    return model_scorer("dssm", settings_of(config), training, prepare, device=device)


def word_scorer(name: str, config: WordsConfig, training: PairTraining, *, device: str | None = None) -> PairScorer:
    """A baseline over the words of the documents of train and their vectors."""

    def prepare(documents: Mapping[str, Document], seed: int) -> Prepared[Any]:
        table = make_word_table(documents.values(), config.words, seed=seed)
        model = _WORD_MODELS[name][0](config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return model_scorer(name, settings_of(config), training, prepare, device=device)


_TOKEN_BUDGET = 8192  # of one pass, padding counted


class FirstTokens(SiameseModel[list[int]]):
    """A siamese model of a backbone, with its own pooling or with a layer over its hidden states."""

    def __init__(self, backbone: Backbone, *, pooler: nn.Module | None = None) -> None:
        """Use a backbone and its parameters.

        Args:
            pooler: from hidden states (N, L, D) to (N, D); None for the backbone's own `pooling`.
        """
        super().__init__()
        self.backbone = backbone
        self.model: nn.Module = backbone.model
        self.pooler = pooler
        self.head = CosineHead()
        unused = getattr(backbone.model, "pooler", None)
        if pooler is None and unused is not None:
            unused.requires_grad_(False)  # else it counts as trained, although no gradient reaches it

    def encode(self, documents: Sequence[list[int]]) -> Tensor:
        """See `SiameseModel.encode`: (N, D)."""
        if self.pooler is None:
            return self.backbone.pool(documents, _TOKEN_BUDGET)
        pooler = self.pooler

        def pool(hidden: Tensor, _: Tensor) -> Tensor:
            pooled: Tensor = pooler(hidden)
            return pooled

        return self.backbone.read(documents, _TOKEN_BUDGET, pool)


def first_tokens(document: Document, backbone: Backbone, max_tokens: int) -> list[int]:
    """The ids of the first tokens of a document's text, without special tokens.

    Args:
        max_tokens: the most tokens, special tokens counted.
    """
    most = min(max_tokens - backbone.tokenizer.n_special, backbone.max_tokens)
    return backbone.tokenize([document.text])[0][0][:most]


def sbert(
    name: str,
    weights: str,
    max_tokens: int,
    training: PairTraining = TRANSFORMER_TRAINING,
    *,
    device: str | None = None,
) -> PairScorer:
    """S-BERT as a `PairScorer`: section 4.1.3 of Jha et al. (2022, TKDD; arXiv:2108.09190).

        y = tanh(W h_[CLS] + b),  logit = a cos(y_1, y_2) + c

    with BERT's own pooler; the paper states only that BERT is tuned and that vectors are compared by the
    cosine. With `MATCHBERT_TOKENS` this is MatchBERT (Yang et al. 2020, arXiv:2004.12297, section 3.2.1). As there,
    the tokens are read in one run, while `engine.encoders.smith.encoder` ends a block where a section ends.

    Args:
        weights: a folder, or a name on the hub; the papers use `bert-base-uncased`.
        max_tokens: special tokens counted.
    """

    def prepare(_documents: Mapping[str, Document], _seed: int) -> Prepared[list[int]]:
        backbone = Backbone(resolve_backbone(weights), device=device, dtype=torch.float32)
        pooler = getattr(backbone.model, "pooler", None)
        if backbone.model.config.model_type != "bert" or pooler is None:
            raise EncoderError(
                f"{weights} is a {backbone.model.config.model_type}, S-BERT reads the pooler of a bert; "
                "give the folder of a BERT"
            )
        return Prepared(
            FirstTokens(backbone, pooler=pooler),
            lambda document: first_tokens(document, backbone, max_tokens),
            encoder=f"{encoder_label(weights)}@{backbone.sha256[:12]}",
        )

    settings: Settings = {"weights": encoder_label(weights), "max_tokens": max_tokens}
    return model_scorer(name, settings, training, prepare, device=device)


@dataclass(frozen=True, slots=True)
class SiameseLongConfig:
    """A BERT that is given long attention; sizes are those of the published models."""

    attention: LongAttention
    bert: str  # a folder, or a name on the hub
    sizes: LongSizes = field(default_factory=LongSizes)
    pooling: Pooling = Pooling.CLS  # our choice; not in the papers
    checkpoint_gradients: bool = True  # recompute layers for the gradient, as 4,096 tokens need much memory


def siamese_long(
    config: SiameseLongConfig, training: PairTraining = TRANSFORMER_TRAINING, *, device: str | None = None
) -> PairScorer:
    """A Siamese Longformer (Beltagy et al. 2020, arXiv:2004.05150) or BigBird (Zaheer et al. 2020) as a `PairScorer`.

    The first token is Longformer's global one; see `engine.encoders.backbone.long_attention` for how each model is
    read. Vectors are compared by cosine, as in section 4.1.3 of Jha et al. (2022). A model begins as
    `indexer.training.long_encoder` makes it.
    """

    def prepare(_documents: Mapping[str, Document], _seed: int) -> Prepared[list[int]]:
        bert = resolve_backbone(config.bert)
        backbone = long_backbone(bert, config.attention, config.sizes, device=device, pooling=config.pooling)
        backbone.checkpoint_gradients(config.checkpoint_gradients)
        max_tokens = backbone.max_tokens + backbone.tokenizer.n_special
        return Prepared(
            FirstTokens(backbone),
            lambda document: first_tokens(document, backbone, max_tokens),
            encoder=f"{encoder_label(config.bert)}@{weights_sha256(bert)[:12]}",
            settings={"max_tokens": max_tokens},
        )

    if config.attention is LongAttention.BIGBIRD:
        # BigBird's code in transformers 5.23 scatters numbers of one precision into a tensor of another.
        training = replace(training, mixed_precision=False)
    settings = settings_of(config) | {"bert": encoder_label(config.bert)}
    return model_scorer(f"s-{config.attention}", settings, training, prepare, device=device)
