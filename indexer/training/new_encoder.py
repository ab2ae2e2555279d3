"""New encoders over a backbone: SMITH, CoLDE and TDE with random parameters, and long attention in a BERT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import torch

from engine.encoders.colde.config import ColdeConfig, Freeze
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.encoder import Variant
from engine.encoders.files import parse_json, resolve_backbone
from engine.encoders.mean import MeanEncoder
from engine.encoders.smith.config import SmithConfig, match_bert, smith, smith_short
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.tde.layers import TdeConfig
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone

ConfigT = TypeVar("ConfigT", SmithConfig, ColdeConfig, TdeConfig, LongSizes)
_BERT_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
_TRUTH = {"true": True, "false": False}


class Kind(StrEnum):
    """The kinds of encoder that can be made."""

    SMITH = "smith"
    SMITH_SHORT = "smith-short"
    MATCHBERT = "matchbert"
    COLDE = "colde"
    TDE = "tde"
    LONGFORMER = "longformer"
    BIGBIRD = "bigbird"


@dataclass(frozen=True)
class NewEncoder:
    """Settings of a new encoder."""

    kind: Kind
    variant: Variant = Variant.FIXED
    sizes: Mapping[str, str] = field(default_factory=dict)  # fields of its configuration, as text
    topic_epochs: int = 200  # of fitting the topics of a TDE, before training


@dataclass(frozen=True)
class Made:
    """An encoder, and which of its parameters are those of the named encoder."""

    encoder: TrainableEncoder
    taken: str | None  # shown after its name; "" if all parameters are its own, None if all are random


def make_encoder(
    new: NewEncoder, backbone: str, texts: Callable[[], Iterable[str]], *, seed: int, device: str | None
) -> Made:
    """Make an encoder in float32.

    A SMITH takes its tokenizer from the backbone. It also takes the word embeddings if the
    backbone is a BERT of its width, and the whole sentence encoder if all sizes agree, as
    with BERT-base in SMITH-Short and MatchBERT. CoLDE and TDE are built on the backbone.
    A Longformer or BigBird has the parameters of a BERT, and reads whole sections.

    Args:
        new: the encoder to make.
        backbone: a folder, a hub name or the bundled encoder.
        texts: for the vocabulary of a TDE; called only for a TDE.
        seed: of the random parameters.
        device: as in `load_encoder`.

    Raises:
        TrainingError: a size is unknown, or its value is not valid.
        EncoderError: sizes do not fit each other or the backbone, or there is no such variant.
    """
    match new.kind:
        case Kind.COLDE:
            colde = _colde(new)
            folder = resolve_backbone(backbone)
            made = ColdeEncoder.create(folder, colde, seed=seed, device=device, dtype=torch.float32)
            return Made(made, ", under new layers")
        case Kind.TDE:
            config = _resized(TdeConfig(new.variant), new)
            return Made(
                TdeEncoder.create(resolve_backbone(backbone), texts(), config, seed=seed, device=device),
                ", beside new topics",
            )
        case Kind.SMITH | Kind.SMITH_SHORT | Kind.MATCHBERT:
            return _smith(new, backbone, seed, device)
        case Kind.LONGFORMER | Kind.BIGBIRD:
            return _long(new, backbone, device)


def _smith(new: NewEncoder, backbone: str, seed: int, device: str | None) -> Made:
    sized = {Kind.SMITH: smith, Kind.SMITH_SHORT: smith_short, Kind.MATCHBERT: match_bert}[new.kind]
    config = _resized(sized(new.variant), new)
    folder = resolve_backbone(backbone)
    published = _bert_sizes(folder)
    own = (config.width, config.sentence_layers, config.sentence_heads, config.sentence_ffn)
    is_same, is_as_wide = published == own, published[:1] == own[:1]
    encoder = SmithEncoder.create(
        folder,
        config,
        seed=seed,
        device=device,
        sentence_encoder=folder if is_same else None,
        word_embeddings=folder if is_as_wide and not is_same else None,
    )
    words = " (the word embeddings alone)" if is_as_wide else None
    return Made(encoder, " (in the sentence encoder)" if is_same else words)


def _long(new: NewEncoder, backbone: str, device: str | None) -> Made:
    if new.variant is not Variant.FIXED:
        raise TrainingError(f"a new {new.kind} has no variant {new.variant.value!r}; leave --variant out")
    sizes = _resized(LongSizes(), new)
    made = long_backbone(resolve_backbone(backbone), LongAttention(new.kind.value), sizes, device=device)
    encoder = MeanEncoder(made, name=new.kind.value, window_tokens=sizes.max_tokens)
    return Made(encoder, f" (with the attention of {new.kind}, positions repeated)")


def _bert_sizes(folder: Path) -> tuple[object, ...]:
    """Width, layers, heads and inner width of a BERT; () where the folder holds something else."""
    try:
        config = parse_json(folder / "config.json")
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        return ()
    return tuple(config.get(name) for name in _BERT_SIZES)


def _colde(new: NewEncoder) -> ColdeConfig:
    freeze = Freeze.ALL_BUT_LAST if new.variant is Variant.RELEASED else Freeze.NONE
    return _resized(ColdeConfig(new.variant, freeze=freeze), new)


def _resized(config: ConfigT, new: NewEncoder) -> ConfigT:
    """The configuration with the requested sizes."""
    known = [one.name for one in fields(config) if one.name != "variant"]
    if unknown := [name for name in new.sizes if name not in known]:
        raise TrainingError(f"{new.kind} has no size {unknown[0]!r}; it has {', '.join(known)}")
    kinds = get_type_hints(type(config))
    values: dict[str, Any] = {name: _parsed(name, text, kinds[name]) for name, text in new.sizes.items()}
    return replace(config, **values)


def _parsed(name: str, text: str, kind: Any) -> object:  # noqa: ANN401
    kind = next((one for one in get_args(kind) if one is not NoneType), kind)
    try:
        value: object = _TRUTH[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        choices = ", ".join(kind) if issubclass(kind, StrEnum) else ", ".join(_TRUTH) if kind is bool else "a number"
        raise TrainingError(f"size {name} cannot be {text!r}; give {choices}") from None
    return value
