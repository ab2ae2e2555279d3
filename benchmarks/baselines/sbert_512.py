"""S-BERT of CoLDE's comparison and MatchBERT: a BERT over the first tokens of each document, compared by cosine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.baselines.first_tokens import FirstTokens, first_tokens
from benchmarks.baselines.pair_training import PairTraining
from benchmarks.baselines.trained_scorer import Prepared, TrainedScorer, settings_of
from benchmarks.prepare import encoder_label
from engine.document import Document
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.weights import MINILM_NAME, resolve_backbone
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
    """Which BERT. The paper's is `bert-base-uncased`; by default the one that is there without a network."""

    weights: str = MINILM_NAME  # a folder, a name on the hub, or this one
    max_tokens: int = 512  # special ones counted


MATCHBERT_TOKENS = 256  # of a document; the length at which the paper found it best


def sbert_512(
    config: SBert512Config = SBert512Config(),
    training: PairTraining = TRANSFORMER_TRAINING,
    *,
    name: str = "s-bert-512",
    device: str | None = None,
) -> TrainedScorer[list[int]]:
    """S-BERT as a `PairScorer`: section 4.1.3 of Jha et al. (2022, TKDD; arXiv:2108.09190).

        y = tanh(W h_[CLS] + b),  logit = a cos(y_1, y_2) + c

    with BERT's own pooler; the paper says only that BERT is tuned and that the cosine is
    compared. At `MATCHBERT_TOKENS` this is MatchBERT (Yang et al. 2020, arXiv:2004.12297, section 3.2.1),
    read in one run as there: `engine.encoders.smith.encoder` ends a block where a section ends.
    """

    def prepare(documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[list[int]]:
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
