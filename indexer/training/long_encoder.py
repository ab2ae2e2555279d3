"""A BERT turned into a Longformer or a BigBird: the same parameters, sparse attention, and more positions."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.long_attention import max_positions
from engine.encoders.backbone.model_folder import load_fast_tokenizer, load_model, quiet_transformers
from engine.encoders.encoder import Pooling
from engine.errors import EncoderError

_LEAST = 16  # tokens of a sequence that can hold a text
_POSITIONS = "embeddings.position_embeddings.weight"
_EQUAL = (  # fields that the configurations of all three models have
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size", "layer_norm_eps", "pad_token_id"),
)


class LongAttention(StrEnum):
    """The kind of attention."""

    LONGFORMER = "longformer"  # a window around each token; the first token attends to all tokens
    BIGBIRD = "bigbird"  # neighbouring blocks, random blocks, the first and the last block


@dataclass(frozen=True, slots=True)
class LongSizes:
    """By default the sizes of longformer-base-4096 and bigbird-roberta-base."""

    max_tokens: int = 4096  # of a sequence, special tokens counted
    window: int = 512  # of Longformer, in tokens; half on either side
    block_tokens: int = 64  # of BigBird
    random_blocks: int = 3  # of BigBird

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            EncoderError: a size is out of its range.
        """
        if self.window < 2 or self.window % 2:
            raise EncoderError(f"a window of {self.window} tokens has no equal halves; give an even number from 2 on")
        if self.max_tokens < _LEAST or min(self.block_tokens, self.random_blocks) < 1:
            raise EncoderError(
                f"max_tokens is {self.max_tokens}, block_tokens {self.block_tokens}, random_blocks "
                f"{self.random_blocks}; give at least {_LEAST}, 1 and 1"
            )


def long_backbone(
    bert: Path,
    attention: LongAttention,
    sizes: LongSizes = LongSizes(),
    *,
    device: str | None = None,
    pooling: Pooling = Pooling.MEAN,
) -> Backbone:
    """A backbone in float32 with the parameters of a BERT, long attention and repeated positions.

    As the authors of Longformer began with RoBERTa (Beltagy et al. 2020, arXiv:2004.05150, section 5): the position
    embeddings are repeated until there are `max_tokens`, and the projections of global attention begin as those of
    the window. BigBird has no other parameters than BERT. The authors then trained the model on masked words; so a
    model made here should be trained before use.

    Raises:
        EncoderError: the folder holds no BERT, or cannot be loaded.
    """
    model, _ = load_model(bert, torch.float32)
    if model.config.model_type != "bert":
        raise EncoderError(
            f"{bert} holds a {model.config.model_type}; a {attention} is made from a BERT, such as all-MiniLM-L6-v2"
        )
    made = _MAKERS[attention](model.config, sizes)
    made.load_state_dict(_weights(model.state_dict(), made))
    # The backbone reads the folder again only if it is saved without any training.
    folder = TemporaryDirectory(prefix="longmatch-")
    with quiet_transformers():
        made.save_pretrained(folder.name)
        tokenizer = load_fast_tokenizer(bert)
        tokenizer.model_max_length = sizes.max_tokens  # that of the BERT is lower
        tokenizer.save_pretrained(folder.name)
    backbone = Backbone(Path(folder.name), device=device, dtype=torch.float32, pooling=pooling)
    weakref.finalize(backbone, folder.cleanup)
    return backbone


def _longformer(bert: Any, sizes: LongSizes) -> Any:  # noqa: ANN401
    return LongformerModel(
        LongformerConfig(
            **_equal_fields(bert),
            attention_window=[sizes.window] * bert.num_hidden_layers,
            max_position_embeddings=sizes.max_tokens + (bert.pad_token_id or 0) + 1,  # counted from the padding id + 1
        ),
        add_pooling_layer=False,
    )


def _bigbird(bert: Any, sizes: LongSizes) -> Any:  # noqa: ANN401
    return BigBirdModel(
        BigBirdConfig(
            **_equal_fields(bert),
            block_size=sizes.block_tokens,
            num_random_blocks=sizes.random_blocks,
            max_position_embeddings=sizes.max_tokens,
        ),
        add_pooling_layer=False,
    )


_MAKERS = {LongAttention.LONGFORMER: _longformer, LongAttention.BIGBIRD: _bigbird}


def _equal_fields(bert: Any) -> dict[str, Any]:  # noqa: ANN401
    return {name: getattr(bert, name) for name in _EQUAL}


def _weights(bert: Mapping[str, Tensor], made: Any) -> dict[str, Tensor]:  # noqa: ANN401
    """The parameters of a long model, from those of a BERT."""
    wanted: Mapping[str, Tensor] = made.state_dict()
    own, positions = wanted[_POSITIONS], bert[_POSITIONS]
    first = len(own) - (max_positions(made) or 0)  # Longformer has rows for ids up to that of padding
    rows = positions[torch.arange(len(own) - first) % len(positions)]
    same = {name: bert[name.replace("_global.", ".")] for name in wanted if name != _POSITIONS}
    return {**same, _POSITIONS: torch.cat([own[:first], rows])}
