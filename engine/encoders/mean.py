"""The hierarchical encoder by means: chunks -> section vectors -> document vector, over any backbone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.document import Document
from engine.encoders.backbone import Backbone, Pooling
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import (
    CONFIG_FILE,
    Embedded,
    TrainableEncoder,
    fingerprint_of,
    module_sha256,
    pad_chunks,
)
from engine.encoders.weights import tokenizer_sha256
from engine.errors import EncoderError

WINDOW_TOKENS = 126  # 128 with [CLS] and [SEP], the length all-MiniLM-L6-v2 was trained at
TOKEN_BUDGET = 4096  # the fastest of 2048 to 16384 on two AVX-512 cores


class MeanEncoder(TrainableEncoder):
    """Reads every token of a document in windows of whole sentences.

    With v_c the backbone's vector of chunk c and n_c its tokens, a section (and
    likewise the document) is

        v = unit(sum_c n_c v_c)

    over its chunks, the token-weighted mean. It has no weights beside those of
    the backbone.
    """

    kind = "mean"

    def __init__(self, backbone: Backbone, *, name: str = "", window_tokens: int = WINDOW_TOKENS) -> None:
        """Wrap a backbone.

        Args:
            backbone: the chunk encoder.
            name: what `load_encoder` was given; the backbone's folder by default.
            window_tokens: tokens of a chunk, cut down to what the backbone can read at once.

        Raises:
            EncoderError: the window holds no token.
        """
        if window_tokens < 1:
            raise EncoderError(f"a window of {window_tokens} tokens holds nothing; give it at least 1")
        self.backbone = backbone
        self.module = backbone.model
        self.name = name or str(backbone.folder)
        self.window_tokens = self.chunk_tokens = min(window_tokens, backbone.max_tokens)
        self.width = backbone.width
        self._tokenizer_sha256 = tokenizer_sha256(backbone.folder)

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """Of weights, tokenizer and window; another one as soon as something was trained."""
        weights = module_sha256(self.module) if self.backbone.is_trained else self.backbone.sha256
        return fingerprint_of({**self._config(), "weights": weights, "tokenizer": self._tokenizer_sha256})

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        window_tokens = config.get("window_tokens")
        if type(window_tokens) is not int:
            raise EncoderError(
                f"{folder / CONFIG_FILE} has window_tokens {window_tokens!r}, no number; save the encoder again"
            )
        pooling = config.get("pooling", Pooling.MEAN)
        if pooling not in list(Pooling):
            raise EncoderError(
                f"{folder / CONFIG_FILE} has pooling {pooling!r}, this version knows {', '.join(Pooling)}; "
                "use the longmatch that saved it"
            )
        backbone = Backbone(folder, device=device, dtype=dtype, pooling=Pooling(pooling))
        return cls(backbone, name=name, window_tokens=window_tokens)

    def _config(self) -> dict[str, str | int]:
        return {"encoder": self.kind, "window_tokens": self.window_tokens, "pooling": self.backbone.pooling}

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.backbone.tokenizer, self.window_tokens)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The backbone's vectors; the chunks of all documents go in common batches."""
        sequences = [ids for document in documents for ids in document.token_ids]
        vectors = self.backbone.embed(sequences, TOKEN_BUDGET)
        return list(torch.split(vectors, [len(document.chunks) for document in documents]))

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Chunk vectors are the states; see the equation above."""
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
        (folder / CONFIG_FILE).write_text(json.dumps(self._config(), indent=1) + "\n")
        card = _CARD.format(window=self.window_tokens, pooling=self.backbone.pooling, sha256=self.backbone.sha256)
        (folder / "README.md").write_text(card)


_CARD = """---
library_name: longmatch
tags: [feature-extraction, long-documents]
---
# Mean-pooled hierarchical encoder

Chunks of {window} tokens, cut at sentence ends, are pooled by the backbone
({pooling}; weights sha256 {sha256}); section and document vectors are token-weighted
means of chunk vectors. It has no weights of its own.
"""
