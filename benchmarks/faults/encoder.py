"""An encoder that needs no model and gives a text the same vectors in every process; not for quality."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage

_WIDTH = 32
_WINDOW_WORDS = 40
_WORD = re.compile(r"\S+")


class WordEncoder(Encoder):
    """Adds up one row of a random matrix for each word of a chunk."""

    name = "words of a matrix"
    width = _WIDTH

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._rows: Vectors = np.random.default_rng(seed).standard_normal((1024, _WIDTH)).astype(np.float32)

    @property
    def fingerprint(self) -> str:
        """The seed as a fingerprint: encoders differ in nothing else."""
        return f"{self._seed:x}".rjust(32, "w")

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut every 40 words; see `Encoder.segment`."""
        chunks, token_ids = [], []
        for number, section in enumerate(document.sections):
            words = list(_WORD.finditer(document.text, section.start, section.stop))
            for first in range(0, len(words), _WINDOW_WORDS):
                window = words[first : first + _WINDOW_WORDS]
                chunks.append(Chunk(number, window[0].start(), window[-1].end(), len(window)))
                token_ids.append(tuple(zlib.crc32(word[0].encode()) % len(self._rows) for word in window))
        n_tokens = sum(chunk.n_tokens for chunk in chunks)
        return SegmentedDocument(document, tuple(chunks), tuple(token_ids), Coverage(n_tokens, n_tokens))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Add up rows; see `Encoder.encode_segmented`."""
        made = []
        for one in documents:
            sums = np.stack([self._rows[list(ids)].sum(0) for ids in one.token_ids])
            sections = np.zeros((len(one.document.sections), _WIDTH), np.float32)
            for chunk, row in zip(one.chunks, sums, strict=True):
                sections[chunk.section] += row
            made.append(EncodedDocument(unit(sums.sum(0)), unit(sections), unit(sums), one.chunks, one.coverage))
        return made

    def save_pretrained(self, folder: Path) -> None:
        """Make the folder, and save nothing in it: the matrix is drawn again."""
        folder.mkdir(parents=True, exist_ok=True)
