"""Seeded texts with the lengths of real documents, and an encoder that costs nothing; for scale, not for quality."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage, Section

WINDOW_CHARS = 700  # about 126 tokens of English
CHARS_PER_TOKEN = 5.5
_N_WORDS = 5000
_WORDS_PER_SENTENCE = 18


@dataclass(frozen=True)
class Lengths:
    """Lengths of documents in words: log-normal, like those of news posts and of specifications."""

    name: str
    median_words: int
    spread: float  # standard deviation of the logarithm
    words_per_section: int


SHORT = Lengths("short", median_words=150, spread=0.7, words_per_section=200)
LONG = Lengths("long", median_words=3000, spread=0.6, words_per_section=300)


def vocabulary(seed: int = 0) -> list[str]:
    """Words of 2 to 10 letters, without repetition."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words: dict[str, None] = {}
    while len(words) < _N_WORDS:
        words["".join(rng.choice(letters, int(rng.integers(2, 11))))] = None
    return list(words)


def documents(lengths: Lengths, n: int, seed: int = 0) -> Iterator[Document]:
    """A stream of documents, one in memory at a time; the same for the same seed."""
    words = np.array(vocabulary(seed))
    # Zipf's law: the r-th word has a frequency of about 1 / r.
    shares = 1 / np.arange(1, _N_WORDS + 1)
    limits = np.cumsum(shares / shares.sum())
    rng = np.random.default_rng([seed, lengths.median_words])
    for number in range(n):
        n_words = max(20, int(lengths.median_words * np.exp(lengths.spread * rng.standard_normal())))
        drawn = words[np.minimum(np.searchsorted(limits, rng.random(n_words)), _N_WORDS - 1)]
        yield _document(f"{lengths.name}-{number:06d}", drawn, lengths.words_per_section)


def _document(doc_id: str, words: NDArray[np.str_], words_per_section: int) -> Document:
    text, sections = "", []
    for part, first in enumerate(range(0, len(words), words_per_section), start=1):
        heading, start = f"Part {part}", len(text)
        text += f"{heading}\n{_sentences(words[first : first + words_per_section].tolist())}\n\n"
        sections.append(Section(heading, (heading,), start, len(text)))
    return Document(doc_id, doc_id, text, tuple(sections), {"words": len(words)}, f"{doc_id}.txt")


def _sentences(words: Sequence[str]) -> str:
    cut = [words[first : first + _WORDS_PER_SENTENCE] for first in range(0, len(words), _WORDS_PER_SENTENCE)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in cut)


class FreeEncoder(Encoder):
    """Cuts text every 700 characters and gives each chunk a row of one random matrix, as wide as MiniLM's."""

    def __init__(self, width: int = 384) -> None:
        self.name = "free"
        self.width = width
        self._rows: Vectors = unit(np.random.default_rng(0).standard_normal((4096, width)).astype(np.float32))
        self._next = 0

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the width, the only value that the matrix depends on."""
        return hashlib.sha256(f"free {self.width}".encode()).hexdigest()[:32]

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document; see `Encoder.segment`."""
        chunks = tuple(
            Chunk(number, start, stop, max(1, round((stop - start) / CHARS_PER_TOKEN)))
            for number, section in enumerate(document.sections)
            for start in range(section.start, section.stop, WINDOW_CHARS)
            for stop in [min(start + WINDOW_CHARS, section.stop)]
        )
        n_tokens = sum(chunk.n_tokens for chunk in chunks)
        return SegmentedDocument(document, chunks, ((),) * len(chunks), Coverage(n_tokens, n_tokens))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Take rows; see `Encoder.encode_segmented`."""
        encoded = []
        for segmented in documents:
            n_chunks, n_sections = len(segmented.chunks), len(segmented.document.sections)
            self._next += n_chunks
            chunks = self._rows[(self._next + np.arange(n_chunks)) % len(self._rows)]
            sections = self._rows[(self._next + np.arange(n_sections)) % len(self._rows)]
            encoded.append(EncodedDocument(chunks[0], sections, chunks, segmented.chunks, segmented.coverage))
        return encoded

    def save_pretrained(self, folder: Path) -> None:
        """Make the folder, and save nothing in it: the matrix is drawn again."""
        folder.mkdir(parents=True, exist_ok=True)
