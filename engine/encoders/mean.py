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
from engine.encoders.trainable import BackboneEncoder, Embedded, pad_chunks
from engine.text.document import Document


class MeanEncoder(BackboneEncoder):
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
        config = MeanConfig(min(window_tokens, backbone.max_tokens), backbone.pooling)
        super().__init__(backbone, config, name=name or str(backbone.folder), chunk_tokens=config.window_tokens)
        self.module: nn.Module = backbone.model
        self.width = backbone.width
        self._loaded = backbone.loaded

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
        return chunk_document(document, self.tokenizer, self.chunk_tokens)

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
        self.save_parameters(folder, dtype)
        self.config.describe(folder, self.backbone.sha256)
