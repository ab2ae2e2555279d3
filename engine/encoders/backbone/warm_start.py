"""Copies the parameters of a published BERT into one of ours; trains nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.encoders.backbone.model_folder import load_model
from engine.errors import EncoderError

_WORDS = "embeddings.word_embeddings.weight"
# Tables that can be copied in part: ours can have fewer rows, never more.
_TABLES = (_WORDS, "embeddings.position_embeddings.weight")


def take_over_bert(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy every parameter of a BERT's folder into a `BertModel` of the same sizes.

    Position and word tables can be shorter here; a pooler that the folder does not
    hold keeps its own parameters. Folders of transformers mostly specify the exact GELU;
    ours is the approximate one that BERT was trained with (they differ by 1e-3).

    Raises:
        EncoderError: the folder holds no BERT, or one of other sizes.
    """
    _copy(bert, _published(folder), folder)


def take_over_words(bert: Any, folder: Path) -> None:  # noqa: ANN401
    """Copy only the word embeddings.

    Raises:
        EncoderError: the folder holds no BERT, or one of another width.
    """
    _copy(bert, {_WORDS: _published(folder)[_WORDS]}, folder)


def _published(folder: Path) -> Mapping[str, Tensor]:
    model, missing = load_model(folder, torch.float32, what="a BERT")
    if model.config.model_type != "bert":
        raise EncoderError(f"{folder} holds a {model.config.model_type}, weights are taken over from a bert alone")
    return {name: value for name, value in model.state_dict().items() if name not in missing}


@torch.no_grad()
def _copy(bert: Any, published: Mapping[str, Tensor], folder: Path) -> None:  # noqa: ANN401
    own: dict[str, Tensor] = bert.state_dict()
    unknown = sorted(published.keys() - own.keys())
    lacking = sorted(name for name in own.keys() - published.keys() if len(published) > 1 and "pooler" not in name)
    if unknown or lacking:
        raise EncoderError(
            f"{folder} does not have the layers of this encoder: {(unknown or lacking)[0]} is only in one of the two; "
            "configure as many layers as it has"
        )
    for name, value in published.items():
        rows = len(own[name]) if name in _TABLES else len(value)
        if value[:rows].shape != own[name].shape:
            raise EncoderError(
                f"{name} of {folder} has shape {tuple(value.shape)}, this encoder needs {tuple(own[name].shape)}; "
                "configure its sizes"
            )
        own[name].copy_(value[:rows])
