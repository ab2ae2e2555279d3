"""The encoder that training starts from: loaded, or new over a backbone, with the requested layers frozen.

A BERT becomes a Longformer or a BigBird with the same parameters, sparse attention and more positions.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from engine.encoders.backbone import Backbone, max_positions
from engine.encoders.colde import ColdeConfig, ColdeEncoder, Freeze
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.files import load_fast_tokenizer, load_model, parse_json, quiet_transformers, resolve_backbone
from engine.encoders.loading import DEFAULT_ENCODER, load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import SmithConfig, match_bert, smith, smith_short
from engine.encoders.tde import TdeConfig, TdeEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import EncoderError, EngineError, TrainingError
from engine.settings import COUNT, FROM_ZERO, SHARE, Checked, Range, parse, setting
from engine.text.document import Document
from engine.training.masked_words import backbone_of
from engine.training.pair_tasks import pretrain_topics
from engine.training.views import sentences

_LEAST = 16  # tokens of a sequence that can hold a text
_POSITIONS = "embeddings.position_embeddings.weight"
_EQUAL = (  # fields that the configurations of all three models have
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size", "layer_norm_eps", "pad_token_id"),
)


class NewKind(StrEnum):
    """The kinds of encoder that can be made."""

    SMITH = "smith"
    SMITH_SHORT = "smith-short"
    MATCHBERT = "matchbert"
    COLDE = "colde"
    TDE = "tde"
    LONGFORMER = "longformer"  # a window around each token; the first token attends to all tokens
    BIGBIRD = "bigbird"  # neighbouring blocks, random blocks, the first and the last block


@dataclass(frozen=True)
class LongSizes(Checked):
    """By default the sizes of longformer-base-4096 and bigbird-roberta-base."""

    error: ClassVar[type[EngineError]] = EncoderError
    max_tokens: int = setting(4096, "most tokens of a sequence, special ones counted", Range(least=_LEAST))
    window: int = setting(512, "tokens of the window of Longformer, half on either side", Range(least=2))
    block_tokens: int = setting(64, "tokens of a block of BigBird", COUNT)
    random_blocks: int = setting(3, "random blocks of BigBird", COUNT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window % 2:
            raise EncoderError(f"a window of {self.window} tokens has no equal halves; give an even number from 2 on")


def long_backbone(bert: Path, attention: NewKind, sizes: LongSizes, *, device: str | None = None) -> Backbone:
    """A backbone in float32 with the parameters of a BERT, long attention and repeated positions.

    As the authors of Longformer began with RoBERTa (Beltagy et al. 2020, arXiv:2004.05150, section 5): the position
    embeddings are repeated until there are `max_tokens`, and the projections of global attention begin as those of
    the window. BigBird has no other parameters than BERT. The authors then trained the model on masked words; so a
    model made here should be trained before use.
    """
    short, _ = load_model(bert, torch.float32)
    if short.config.model_type != "bert":
        raise EncoderError(
            f"{bert} holds a {short.config.model_type}; a {attention} is made from a BERT, such as all-MiniLM-L6-v2"
        )
    model = _MAKERS[attention](short.config, sizes)
    model.load_state_dict(_weights(short.state_dict(), model))
    # The backbone reads the folder again only if it is saved without any training.
    folder = TemporaryDirectory(prefix="longmatch-")
    with quiet_transformers():
        model.save_pretrained(folder.name)
        tokenizer = load_fast_tokenizer(bert)
        tokenizer.model_max_length = sizes.max_tokens  # that of the BERT is lower
        tokenizer.save_pretrained(folder.name)
    backbone = Backbone(Path(folder.name), device=device, dtype=torch.float32)
    weakref.finalize(backbone, folder.cleanup)
    return backbone


def _longformer(bert: Any, sizes: LongSizes) -> Any:  # noqa: ANN401
    return LongformerModel(
        LongformerConfig(
            **{name: getattr(bert, name) for name in _EQUAL},
            attention_window=[sizes.window] * bert.num_hidden_layers,
            max_position_embeddings=sizes.max_tokens + (bert.pad_token_id or 0) + 1,  # counted from the padding id + 1
        ),
        add_pooling_layer=False,
    )


def _bigbird(bert: Any, sizes: LongSizes) -> Any:  # noqa: ANN401
    return BigBirdModel(
        BigBirdConfig(
            **{name: getattr(bert, name) for name in _EQUAL},
            block_size=sizes.block_tokens,
            num_random_blocks=sizes.random_blocks,
            max_position_embeddings=sizes.max_tokens,
        ),
        add_pooling_layer=False,
    )


_MAKERS = {NewKind.LONGFORMER: _longformer, NewKind.BIGBIRD: _bigbird}


def _weights(bert: Mapping[str, Tensor], long: Any) -> dict[str, Tensor]:  # noqa: ANN401
    """The parameters of a long model, from those of a BERT."""
    wanted: Mapping[str, Tensor] = long.state_dict()
    own, positions = wanted[_POSITIONS], bert[_POSITIONS]
    first = len(own) - (max_positions(long) or 0)  # Longformer has rows for ids up to that of padding
    rows = positions[torch.arange(len(own) - first) % len(positions)]
    same = {name: bert[name.replace("_global.", ".")] for name in wanted if name != _POSITIONS}
    return {**same, _POSITIONS: torch.cat([own[:first], rows])}


_BERT_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


@dataclass(frozen=True)
class NewEncoder(Checked):
    """Settings of a new encoder."""

    kind: NewKind
    variant: Variant = setting(Variant.FIXED, "version of the architecture: paper, released (its code) or fixed")
    sizes: Mapping[str, str] = field(default_factory=dict)  # fields of its configuration, as text
    topic_epochs: int = setting(200, "epochs of fitting the topics of a tde, before training", FROM_ZERO)


@dataclass(frozen=True)
class StartingEncoder:
    """An encoder, and which of its parameters it inherits from the named encoder."""

    encoder: TrainableEncoder
    inherited: str | None  # shown after its name; "" if all parameters are its own, None if all are random


def make_encoder(
    new: NewEncoder, backbone: str, texts: Iterable[str], *, seed: int, device: str | None
) -> StartingEncoder:
    """Make an encoder in float32.

    A SMITH takes its tokenizer from the backbone. It also takes the word embeddings if the
    backbone is a BERT of its width, and the whole sentence encoder if all sizes agree, as
    with BERT-base in SMITH-Short and MatchBERT. CoLDE and TDE are built on the backbone.
    A Longformer or BigBird has the parameters of a BERT, and reads whole sections.
    """
    config = _resized(new)
    folder = resolve_backbone(backbone)
    match config:
        case ColdeConfig():
            colde = ColdeEncoder.create(folder, config, seed=seed, device=device, dtype=torch.float32)
            return StartingEncoder(colde, ", under new layers")
        case TdeConfig():
            tde = TdeEncoder.create(folder, texts, config, seed=seed, device=device)
            return StartingEncoder(tde, ", beside new topics")
        case SmithConfig():
            return _smith(config, folder, seed, device)
        case LongSizes():
            long = long_backbone(folder, new.kind, config, device=device)
            mean = MeanEncoder(long, name=new.kind.value, window_tokens=config.max_tokens)
            return StartingEncoder(mean, f" (with the attention of {new.kind}, positions repeated)")


def _smith(config: SmithConfig, folder: Path, seed: int, device: str | None) -> StartingEncoder:
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
    return StartingEncoder(encoder, " (in the sentence encoder)" if is_same else words)


def _bert_sizes(folder: Path) -> tuple[object, ...]:
    """Width, layers, heads and inner width of a BERT; () where the folder holds something else."""
    try:
        config = parse_json(folder / "config.json")
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        return ()
    return tuple(config.get(name) for name in _BERT_SIZES)


_SMITHS = {NewKind.SMITH: smith, NewKind.SMITH_SHORT: smith_short, NewKind.MATCHBERT: match_bert}


def configuration(new: NewEncoder) -> SmithConfig | ColdeConfig | TdeConfig | LongSizes:
    """The sizes that a new encoder has by default."""
    match new.kind:
        case NewKind.COLDE:
            freeze = Freeze.ALL_BUT_LAST if new.variant is Variant.RELEASED else Freeze.NONE
            return ColdeConfig(new.variant, freeze=freeze)
        case NewKind.TDE:
            return TdeConfig(new.variant)
        case NewKind.LONGFORMER | NewKind.BIGBIRD:
            if new.variant is not Variant.FIXED:
                raise TrainingError(f"a new {new.kind} has no variant {new.variant.value!r}; leave variant out")
            return LongSizes()
        case smith_kind:
            return _SMITHS[smith_kind](new.variant)


def _resized(new: NewEncoder) -> SmithConfig | ColdeConfig | TdeConfig | LongSizes:
    config = configuration(new)
    known = [attribute.name for attribute in fields(config) if attribute.name != "variant"]
    if unknown := [name for name in new.sizes if name not in known]:
        raise TrainingError(f"{new.kind} has no size {unknown[0]!r}; it has {', '.join(known)}")
    kinds = get_type_hints(type(config))
    values: dict[str, Any] = {name: parse(f"size {name}", text, kinds[name]) for name, text in new.sizes.items()}
    return replace(config, **values)


_TOPIC_SENTENCES = 20_000  # of a corpus, so that fitting topics takes minutes at most


@dataclass(frozen=True)
class Start(Checked):
    """The encoder that training starts from, and which of its parameters are frozen."""

    encoder: str = DEFAULT_ENCODER  # or the backbone of a new one
    new: NewEncoder | None = None
    pooling: Pooling | None = setting(None, "mean or cls, of a mean encoder; by default its own")
    window_tokens: int | None = setting(None, "most tokens of a chunk of a mean encoder; by default its own", COUNT)
    frozen_layers: int = setting(0, "layers of the backbone that are not trained, from the bottom", FROM_ZERO)
    checkpoint_gradients: bool = setting(False, "compute layers twice, which needs less memory and more time")
    dropout: float | None = setting(None, "dropout; by default that of the encoder. 0 halves the time on a CPU", SHARE)


def starting_encoder(
    start: Start,
    documents: Sequence[Document],
    *,
    seed: int,
    device: str | None,
    is_resumed: bool,
    log: Callable[[str], None],
) -> StartingEncoder:
    """Load or make the encoder in float32."""
    starting = _load_or_make(start, documents, seed=seed, device=device)
    encoder = starting.encoder
    epochs = 0 if start.new is None or is_resumed else start.new.topic_epochs
    if epochs and isinstance(encoder, TdeEncoder) and encoder.module.topics is not None:
        texts = topic_texts(documents, seed=seed)
        log(f"topics: {epochs} epochs over {len(texts):,} documents and sentences")
        pretrain_topics(encoder, texts, epochs=epochs, seed=seed)
    if start.dropout is not None:
        set_dropout(encoder.module, start.dropout)
    _take_faster_attention(encoder)
    if start.frozen_layers:
        backbone_of(encoder, "has no layers that can be frozen one by one").freeze(start.frozen_layers)
    if start.checkpoint_gradients:
        backbone_of(encoder, "cannot checkpoint gradients; train it with fewer group tokens").checkpoint_gradients()
    return starting


def _load_or_make(start: Start, documents: Sequence[Document], *, seed: int, device: str | None) -> StartingEncoder:
    if start.new is not None:
        texts = (document.text for document in documents)
        return make_encoder(start.new, start.encoder, texts, seed=seed, device=device)
    encoder = load_trainable(start.encoder, device=device, dtype=torch.float32)
    if start.pooling is not None or start.window_tokens is not None:
        encoder = _repooled(encoder, start, device)
    return StartingEncoder(encoder, "")


def _repooled(encoder: TrainableEncoder, start: Start, device: str | None) -> MeanEncoder:
    if not isinstance(encoder, MeanEncoder):
        raise TrainingError(f"an encoder of type {encoder.kind} has its own pooling and window; begin with a backbone")
    backbone = Backbone(
        encoder.backbone.folder, device=device, dtype=torch.float32, pooling=start.pooling or encoder.backbone.pooling
    )
    return MeanEncoder(backbone, name=start.encoder, window_tokens=start.window_tokens or encoder.chunk_tokens)


def set_dropout(module: nn.Module, share: float) -> None:
    """Set the share of values that every dropout layer of a module drops.

    Torch draws dropout in one thread: without it, a step of a six-layer BERT on two
    cores takes 0.71 s instead of 1.26 s.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = share


def _take_faster_attention(encoder: TrainableEncoder) -> None:
    """Use unfused attention on a CPU: the gradient of torch's fused attention is slower (1.04 s, not 0.71 s)."""
    backbone = getattr(encoder, "backbone", None)
    if isinstance(backbone, Backbone) and backbone.device == "cpu" and backbone.model.config.model_type == "bert":
        backbone.model.set_attn_implementation("eager")


def topic_texts(documents: Sequence[Document], *, seed: int, most: int = _TOPIC_SENTENCES) -> list[str]:
    """Whole documents, and their sentences: all, or about `most` drawn, the same number from each document."""
    rng = np.random.default_rng(seed)
    each = max(1, most // max(len(documents), 1))
    texts = [document.text for document in documents]
    for document in documents:
        spans = sentences(document)
        drawn = np.sort(rng.permutation(len(spans))[:each])
        texts += [document.text[spans[int(at)].start : spans[int(at)].stop] for at in drawn]
    return texts
