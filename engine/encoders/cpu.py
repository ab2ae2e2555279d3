"""The mean encoder on a CPU, by OpenVINO, for `index`, `query` and `serve`. It neither trains nor imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from engine.encoders.backbone.openvino_bert import OpenvinoBert
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import (
    EncodedDocument,
    Encoder,
    Pooling,
    SegmentedDocument,
    Vectors,
    fingerprint_of,
    token_weighted_means,
)
from engine.encoders.files import (
    CONFIG_FILE,
    copy_model,
    read_configuration,
    weights_sha256,
    write_description,
)
from engine.errors import EncoderError
from engine.text.document import Document

WINDOW_TOKENS = 126  # 128 with [CLS] and [SEP], the length all-MiniLM-L6-v2 was trained at
KIND = "mean"


@dataclass(frozen=True, slots=True)
class MeanConfig:
    """The settings that the vectors of a mean encoder depend on, besides the backbone.

    Raises:
        EncoderError: the window holds no token.
    """

    window_tokens: int = WINDOW_TOKENS
    pooling: Pooling = Pooling.MEAN

    def __post_init__(self) -> None:
        if self.window_tokens < 1:
            raise EncoderError(f"a window of {self.window_tokens} tokens holds nothing; give it at least 1")

    @classmethod
    def of(cls, values: Mapping[str, Any], folder: Path) -> Self:
        """The configuration with these values, which come from a folder.

        Raises:
            EncoderError: a value is missing, of the wrong kind, or out of its range.
        """
        # Files without a pooling were saved when mean pooling was the only one.
        return read_configuration(cls, {"pooling": Pooling.MEAN.value, **values}, folder / CONFIG_FILE)

    def describe(self, folder: Path, weights: str) -> None:
        """Write configuration and model card."""
        card = _CARD.format(window=self.window_tokens, pooling=self.pooling, sha256=weights)
        write_description(folder, {"encoder": KIND, **asdict(self)}, card)


class CpuEncoder(Encoder):
    """Computes the vectors of `engine.encoders.mean.MeanEncoder`, whose fingerprint it has, without torch.

    In int8 it is an encoder of its own, with a name and a fingerprint that say so.
    """

    has_independent_chunks = True

    def __init__(self, backbone: OpenvinoBert, config: MeanConfig, *, name: str) -> None:
        """Wrap a backbone; its pooling is that of the configuration."""
        self.backbone, self.width = backbone, backbone.width
        self._form = {"dtype": "int8"} if backbone.dtype == "int8" else {}
        self.name = f"{name}:int8" if self._form else name
        self.config = replace(config, window_tokens=min(config.window_tokens, backbone.max_tokens))
        self._weights = weights_sha256(backbone.folder)

    @property
    def weights_bytes(self) -> int:
        """See `Encoder`."""
        return self.backbone.weights_bytes

    @property
    def n_read(self) -> int:
        """See `Encoder`."""
        return self.backbone.n_read

    @property
    def fingerprint(self) -> str:
        """See `Encoder`."""
        read_by = {"weights": self._weights, "tokenizer": self.backbone.tokenizer.sha256}
        return fingerprint_of({"encoder": KIND, **asdict(self.config), **read_by, **self._form})

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.backbone.tokenizer, self.config.window_tokens)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents, whose chunks share batches; see `Encoder.encode_segmented`."""
        rows = self.backbone.encode([ids for document in documents for ids in document.token_ids])
        ends = np.cumsum([len(document.chunks) for document in documents])[:-1]
        parts = np.split(rows, ends) if documents else []
        return [self.from_chunks(document, part) for document, part in zip(documents, parts, strict=True)]

    def from_chunks(self, document: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
        """See `Encoder.from_chunks`, and the equation of `engine.encoders.mean.MeanEncoder`."""
        return token_weighted_means(document, chunks)

    def save_pretrained(self, folder: Path) -> None:
        """Copy backbone and tokenizer, and write configuration and model card; see `Encoder.save_pretrained`."""
        self.backbone.tokenizer.save_pretrained(folder)
        copy_model(self.backbone.folder, folder)
        self.config.describe(folder, self._weights)


_CARD = """# Mean-pooled hierarchical encoder

Chunks of {window} tokens, cut at sentence ends, are pooled by the backbone
({pooling}; weights sha256 {sha256}); section and document vectors are token-weighted
means of chunk vectors. It has no weights of its own.
"""
