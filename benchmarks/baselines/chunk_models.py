"""A published model as it reads one chunk: token ids in, a unit vector out. No documents here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.backbone.weights import weight_shapes
from engine.encoders.encoder import Vectors
from engine.errors import EncoderError

_POOLER = "pooler.dense.weight"


class ChunkModel(Protocol):
    """What is asked of a model here; `Backbone` is one."""

    @property
    def folder(self) -> Path:
        """Of weights and tokenizer."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the model."""

    @property
    def width(self) -> int:
        """D, the length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of one sequence, those that are put around it not counted."""

    @property
    def sha256(self) -> str:
        """Of all that a vector depends on, beside tokens and pooling."""

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """(N, D) unit rows, as `Backbone.encode`."""


class PooledBackbone(Backbone):
    """A BERT whose vector is tanh(W h + b) of the hidden state h of [CLS], its own pooler."""

    def __init__(self, folder: Path, *, device: str | None = None, dtype: torch.dtype | None = None) -> None:
        """Load weights from a folder.

        Raises:
            EncoderError: not a model folder, or its weights hold no pooler.
        """
        super().__init__(folder, device=device, dtype=dtype, pooling=Pooling.CLS)
        names = [name for file in folder.glob("*.safetensors") for name in weight_shapes(file)]
        if not any(name.endswith(_POOLER) for name in names):
            raise EncoderError(
                f"{folder} holds no {_POOLER}, without which its vectors would be random; read it as simcse"
            )

    def pool(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """As `Backbone.pool`."""
        first = super().pool(sequences, token_budget)  # (N, D)
        pooled: Tensor = self.model.pooler(first.unsqueeze(1).to(self.dtype))
        return pooled.float()
