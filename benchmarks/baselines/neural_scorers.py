"""The neural baselines by name, each as a `PairScorer` that reads texts and is trained on pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.baselines.hierarchical import HanConfig, SmashConfig, han, smash
from benchmarks.baselines.matchers import ArcIConfig, DssmConfig, arc_i, dssm
from benchmarks.baselines.re2 import Re2Config, re2
from benchmarks.baselines.text_inputs import WordConfig
from benchmarks.baselines.transformer_scorers import (
    MATCHBERT_TOKENS,
    SBert512Config,
    SiameseLongConfig,
    sbert_512,
    siamese_long,
)
from benchmarks.pair_scorer import SMALL, PairScorer
from engine.encoders.files import MINILM_NAME
from engine.errors import TrainingError
from indexer.training.long_encoder import LongAttention, LongSizes

WordsConfig: TypeAlias = ArcIConfig | HanConfig | SmashConfig | Re2Config


@dataclass(frozen=True, slots=True)
class Given:
    """The files of a user. By default, word vectors are trained on train, and long models begin with `bert`."""

    word_vectors: Path | None = None  # text file, such as glove.6B.50d.txt
    bert: str = MINILM_NAME
    longformer: str = ""
    bigbird: str = ""
    device: str | None = None  # by default a GPU if torch finds one


def neural_scorer(name: str, *, given: Given = Given(), is_small: bool = False) -> PairScorer:
    """Make a baseline.

    Args:
        name: one of `NEURAL_SCORERS`.
        given: pretrained parameters, if there are any, and the device.
        is_small: narrow layers over the first words of documents, marked in the settings; the figures mean nothing
            then.

    Raises:
        TrainingError: there is no baseline of this name.
    """
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
    config = replace(config, words=_words(config.words, given, is_small))
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


def _words(config: WordConfig, given: Given, is_small: bool) -> WordConfig:
    words = replace(config, vectors=given.word_vectors)
    return replace(words, width=32, min_count=2, epochs=1) if is_small else words


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
