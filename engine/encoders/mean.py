"""The training-free hierarchical encoder: chunks -> section vectors -> document vector, by means."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.document import Chunk, Coverage, Document
from engine.encoders.backbone import Backbone, tokenizer_sha256
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.errors import DocumentError, EncoderError
from engine.segmentation import fill_windows, sentence_starts

CONFIG_FILE = "longmatch.json"
WINDOW_TOKENS = 126  # 128 with [CLS] and [SEP], the length all-MiniLM-L6-v2 was trained at
TOKEN_BUDGET = 4096  # the fastest of 2048 to 16384 on two AVX-512 cores


class MeanEncoder(Encoder):
    """Reads every token of a document in windows of whole sentences.

    With v_c the backbone's vector of chunk c and n_c its tokens, a section (and
    likewise the document) is

        v = unit(sum_c n_c v_c)

    over its chunks, the token-weighted mean. Nothing is trained.
    """

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
        self.name = name or str(backbone.folder)
        self.window_tokens = min(window_tokens, backbone.max_tokens)
        self.width = backbone.width
        read_by = {"weights": backbone.sha256, "tokenizer": tokenizer_sha256(backbone.folder)}
        described = json.dumps({**self._config(), **read_by}, sort_keys=True)
        self.fingerprint = hashlib.sha256(described.encode()).hexdigest()[:32]

    def _config(self) -> dict[str, str | int]:
        return {"encoder": "mean", "window_tokens": self.window_tokens, "pooling": "mean"}

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        texts = [document.text[section.start : section.stop] for section in document.sections]
        chunks: list[Chunk] = []
        token_ids: list[tuple[int, ...]] = []
        n_tokens = 0
        for number, (ids, offsets) in enumerate(self.backbone.tokenize(texts)):
            n_tokens += len(ids)
            base = document.sections[number].start
            for window in fill_windows(_sentence_ends(texts[number], offsets), self.window_tokens):
                start, stop = offsets[window.first][0], offsets[window.stop - 1][1]
                chunks.append(Chunk(number, base + start, base + stop, window.stop - window.first))
                token_ids.append(tuple(ids[window.first : window.stop]))
        if not chunks:
            raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
        read = sum(chunk.n_tokens for chunk in chunks)
        return SegmentedDocument(document, tuple(chunks), tuple(token_ids), Coverage(read, n_tokens))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode the chunks of all documents in common batches; see `Encoder.encode_segmented`."""
        sequences = [ids for document in documents for ids in document.token_ids]
        vectors = self.backbone.encode(sequences, TOKEN_BUDGET)
        encoded = []
        first = 0
        for document in documents:
            stop = first + len(document.chunks)
            encoded.append(_pool(document, vectors[first:stop]))
            first = stop
        return encoded

    def save_pretrained(self, folder: Path) -> None:
        """Write backbone, configuration and model card; `load_encoder(str(folder))` reads them."""
        self.backbone.save_pretrained(folder)
        (folder / CONFIG_FILE).write_text(json.dumps(self._config(), indent=1) + "\n")
        (folder / "README.md").write_text(_CARD.format(window=self.window_tokens, sha256=self.backbone.sha256))


_CARD = """---
library_name: longmatch
tags: [feature-extraction, long-documents]
---
# Mean-pooled hierarchical encoder

Chunks of {window} tokens, cut at sentence ends, are mean pooled by the backbone
(weights sha256 {sha256}); section and document vectors are token-weighted
means of chunk vectors. Nothing was trained.
"""


def _sentence_ends(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Count of tokens before the end of each sentence; the last is all of them."""
    token_starts = [start for start, _ in offsets]
    ends = {bisect_left(token_starts, start) for start in sentence_starts(text)[1:]}
    ends.add(len(token_starts))
    return sorted(ends - {0})


def _pool(segmented: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
    tokens = np.array([chunk.n_tokens for chunk in segmented.chunks], np.float32)
    weighted = chunks * tokens[:, None]
    sections = np.zeros((len(segmented.document.sections), chunks.shape[1]), np.float32)
    np.add.at(sections, [chunk.section for chunk in segmented.chunks], weighted)
    return EncodedDocument(
        document=unit(weighted.sum(0)),
        sections=unit(sections),
        chunks=chunks,
        chunk_spans=segmented.chunks,
        coverage=segmented.coverage,
    )
