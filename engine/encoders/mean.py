"""The hierarchical encoder by mean pooling: chunks -> section vectors -> document vector, over any backbone.

It trains, and encodes on GPUs; `engine.encoders.cpu` has the same encoder for CPUs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.chunking import chunk_document
from engine.encoders.cpu import KIND, WINDOW_TOKENS, MeanConfig
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.files import tokenizer_sha256
from engine.encoders.trainable import Embedded, TrainableEncoder, module_sha256, pad_chunks, read_chunks
from engine.text.document import Document

TOKEN_BUDGET = 4096  # the fastest of 2048 to 16384 on two AVX-512 cores


class MeanEncoder(TrainableEncoder):
    """Reads every token of a document in windows of whole sentences.

    With v_c the backbone's vector of chunk c and n_c its tokens, the vector of a
    section (and of the document) is

        v = unit(sum_c n_c v_c)

    over its chunks, the token-weighted mean. It has no parameters besides those
    of the backbone.
    """

    kind = KIND
    has_independent_chunks = True

    def __init__(self, backbone: Backbone, *, name: str = "", window_tokens: int = WINDOW_TOKENS) -> None:
        """Wrap a backbone; windows are lowered to what it can read at once.

        Raises:
            EncoderError: the window holds no token.
        """
        self.backbone = backbone
        self.device, self.reader = backbone.device, backbone.reader
        self.name = name or str(backbone.folder)
        self.window_tokens = self.chunk_tokens = min(window_tokens, backbone.max_tokens)
        self.config = MeanConfig(self.window_tokens, backbone.pooling)
        self.module: nn.Module = backbone.model
        self.width = backbone.width
        self._tokenizer_sha256 = tokenizer_sha256(backbone.folder)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of parameters, tokenizer, window and pooling; see `Encoder`."""
        weights = module_sha256(self.module) if self.backbone.is_trained else self.backbone.sha256
        return self.config.fingerprint(weights, self._tokenizer_sha256)

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        made = MeanConfig.of(config, folder)
        backbone = Backbone(folder, device=device, dtype=dtype, pooling=made.pooling)
        return cls(backbone, name=name, window_tokens=made.window_tokens)

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.backbone.tokenizer, self.window_tokens)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The backbone's vectors; chunks of all documents share batches."""
        return read_chunks(documents, lambda sequences: self.backbone.embed(sequences, TOKEN_BUDGET))

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Chunk vectors are the states; see the equation of the class."""
        chunks, mask = pad_chunks([state.float() for state in states])
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
        self.config.describe(folder, self.backbone.sha256)
