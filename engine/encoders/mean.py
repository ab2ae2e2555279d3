"""The hierarchical encoder by mean pooling: chunks -> section vectors -> document vector, over any backbone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.files import CONFIG_FILE, read_configuration, tokenizer_sha256, write_description
from engine.encoders.trainable import (
    Embedded,
    TrainableEncoder,
    fingerprint_of,
    module_sha256,
    pad_chunks,
    read_chunks,
)
from engine.errors import EncoderError
from engine.text.document import Document

WINDOW_TOKENS = 126  # 128 with [CLS] and [SEP], the length all-MiniLM-L6-v2 was trained at
TOKEN_BUDGET = 4096  # the fastest of 2048 to 16384 on two AVX-512 cores


@dataclass(frozen=True, slots=True)
class MeanConfig:
    """The settings that the vectors depend on, besides the backbone."""

    window_tokens: int
    pooling: Pooling


class MeanEncoder(TrainableEncoder):
    """Reads every token of a document in windows of whole sentences.

    With v_c the backbone's vector of chunk c and n_c its tokens, the vector of a
    section (and of the document) is

        v = unit(sum_c n_c v_c)

    over its chunks, the token-weighted mean. It has no parameters besides those
    of the backbone.
    """

    kind = "mean"

    def __init__(self, backbone: Backbone, *, name: str = "", window_tokens: int = WINDOW_TOKENS) -> None:
        """Wrap a backbone.

        Args:
            backbone: the chunk encoder.
            name: the name given to `load_encoder`; the backbone's folder by default.
            window_tokens: most tokens of a chunk; lowered to what the backbone can read at once.

        Raises:
            EncoderError: the window holds no token.
        """
        if window_tokens < 1:
            raise EncoderError(f"a window of {window_tokens} tokens holds nothing; give it at least 1")
        self.backbone = backbone
        self.device, self.reader = backbone.device, backbone.reader
        self.name = name or str(backbone.folder)
        self.window_tokens = self.chunk_tokens = min(window_tokens, backbone.max_tokens)
        self.width = backbone.width
        self._tokenizer_sha256 = tokenizer_sha256(backbone.folder)

    @cached_property
    def module(self) -> nn.Module:
        """The backbone's model; encoding alone does not need it."""
        model: nn.Module = self.backbone.model
        return model

    @property
    def weights_bytes(self) -> int:
        """See `TrainableEncoder.weights_bytes`."""
        return self.backbone.weights_bytes

    def inference(self) -> AbstractContextManager[None]:
        """See `TrainableEncoder.inference`."""
        return self.backbone.inference()

    @property
    def fingerprint(self) -> str:
        """Fingerprint of parameters, tokenizer, window and pooling; see `Encoder`."""
        weights = module_sha256(self.module) if self.backbone.is_trained else self.backbone.sha256
        return fingerprint_of({**self._config(), "weights": weights, "tokenizer": self._tokenizer_sha256})

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        # Files without a pooling were saved when mean pooling was the only one.
        values = {"pooling": Pooling.MEAN.value, **config}
        made = read_configuration(MeanConfig, values, folder / CONFIG_FILE)
        backbone = Backbone(folder, device=device, dtype=dtype, pooling=made.pooling)
        return cls(backbone, name=name, window_tokens=made.window_tokens)

    def _config(self) -> dict[str, str | int]:
        return {"encoder": self.kind, "window_tokens": self.window_tokens, "pooling": self.backbone.pooling}

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.backbone.tokenizer, self.window_tokens)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The backbone's vectors; chunks of all documents share batches."""
        return read_chunks(documents, lambda sequences: self.backbone.embed(sequences, TOKEN_BUDGET))

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Chunk vectors are the states; see the equation of the class."""
        chunks, mask = pad_chunks([own.float() for own in states])
        tokens, _ = pad_chunks(
            [
                torch.tensor([chunk.n_tokens for chunk in document.chunks], dtype=chunks.dtype, device=chunks.device)
                for document in documents
            ]
        )
        return Embedded(normalize((chunks * tokens.unsqueeze(-1)).sum(1), dim=-1), chunks, mask)

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write backbone, configuration and model card; see `TrainableEncoder.save_pretrained`."""
        self.backbone.save_pretrained(folder, dtype=dtype)
        card = _CARD.format(window=self.window_tokens, pooling=self.backbone.pooling, sha256=self.backbone.sha256)
        write_description(folder, self._config(), card)


_CARD = """# Mean-pooled hierarchical encoder

Chunks of {window} tokens, cut at sentence ends, are pooled by the backbone
({pooling}; weights sha256 {sha256}); section and document vectors are token-weighted
means of chunk vectors. It has no weights of its own.
"""
