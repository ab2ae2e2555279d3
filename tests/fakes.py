"""Stand-ins behind the encoder interface, and documents made in memory; no model, no file."""

import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.errors import DocumentError
from engine.text.document import Document, MetadataValue
from engine.text.segmentation import Chunk, Coverage, Section

WINDOW_WORDS = 8


class Terminal(io.StringIO):
    """A stream that claims to be a terminal, and keeps what is written."""

    def isatty(self) -> bool:
        return True


_WORD = re.compile(r"\S+")


def word_vector(word: str, width: int) -> Vectors:
    """The same Gaussian for the same word, on every machine."""
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(width).astype(np.float32)


class FakeEncoder(Encoder):
    """Sums one seeded vector a word: texts that share words are near each other. Remembers what it encoded."""

    def __init__(
        self, *, name: str = "fake", width: int = 32, fingerprint: str = "f" * 32, breaks_on: Iterable[str] = ()
    ) -> None:
        self.name = name
        self.width = width
        self._fingerprint = fingerprint
        self.breaks_on = set(breaks_on)
        self.batches: list[list[str]] = []
        self._words: dict[str, Vectors] = {}

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def encoded(self) -> list[str]:
        return [doc_id for batch in self.batches for doc_id in batch]

    def segment(self, document: Document) -> SegmentedDocument:
        chunks: list[Chunk] = []
        token_ids: list[tuple[int, ...]] = []
        for number, section in enumerate(document.sections):
            words = list(_WORD.finditer(document.text, section.start, section.stop))
            for first in range(0, len(words), WINDOW_WORDS):
                window = words[first : first + WINDOW_WORDS]
                chunks.append(Chunk(number, window[0].start(), window[-1].end(), len(window)))
                token_ids.append(tuple(zlib.crc32(word.group().encode()) for word in window))
        if not chunks:
            raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
        n_tokens = sum(chunk.n_tokens for chunk in chunks)
        return SegmentedDocument(document, tuple(chunks), tuple(token_ids), Coverage(n_tokens, n_tokens))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        for segmented in documents:
            if segmented.document.doc_id in self.breaks_on:
                raise RuntimeError(f"out of memory at {segmented.document.doc_id}")
        self.batches.append([segmented.document.doc_id for segmented in documents])
        return [self._one(segmented) for segmented in documents]

    def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
        text = segmented.document.text
        sums = np.stack([self._sum(text[chunk.start : chunk.stop]) for chunk in segmented.chunks])
        sections = np.zeros((len(segmented.document.sections), self.width), np.float32)
        for chunk, row in zip(segmented.chunks, sums, strict=True):
            sections[chunk.section] += row
        return EncodedDocument(unit(sums.sum(0)), unit(sections), unit(sums), segmented.chunks, segmented.coverage)

    def _sum(self, text: str) -> Vectors:
        total = np.zeros(self.width, np.float32)
        for word in text.split():
            if word not in self._words:
                self._words[word] = word_vector(word, self.width)
            total += self._words[word]
        return total

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(parents=True)


def make_document(
    doc_id: str,
    sections: Sequence[tuple[str, str]] | str,
    *,
    title: str = "",
    source: str | None = None,
    metadata: Mapping[str, MetadataValue] | None = None,
) -> Document:
    """A document of (heading, body) sections, or of one without heading; its source is `doc_id` + ".txt"."""
    given = [("", sections)] if isinstance(sections, str) else sections
    text = ""
    made = []
    for heading, body in given:
        start = len(text)
        text += f"{heading}\n{body}\n\n" if heading else body
        made.append(Section(heading, (heading,) if heading else (), start, len(text)))
    return Document(
        doc_id, title or doc_id, text, tuple(made), metadata or {}, f"{doc_id}.txt" if source is None else source
    )


def make_corpus(n_documents: int, *, seed: int = 0, boilerplate: str = "") -> list[Document]:
    """Documents over ten topics, three sections each; with `boilerplate` one more, the same in all."""
    rng = np.random.default_rng(seed)
    documents = []
    for number in range(n_documents):
        topic = number % 10
        sections = [
            (f"part {part}", " ".join(_words(rng, topic, int(rng.integers(12, 30)))))
            for part in ("one", "two", "three")
        ]
        if boilerplate:
            sections.append(("licence", boilerplate))
        metadata: dict[str, MetadataValue] = {
            "topic": topic,
            "year": 2000 + number % 25,
            "family": "even" if number % 2 == 0 else "odd",
            "tags": [f"t{topic}", f"n{number % 3}"],
        }
        documents.append(make_document(f"doc{number:03d}", sections, title=f"Title {number}", metadata=metadata))
    return documents


def with_copies(documents: Sequence[Document], step: int) -> list[Document]:
    """All documents, and every `step`-th twice more, under names before and after the others."""
    copies = [
        replace(one, doc_id=f"{name}{one.doc_id}", source=f"{name}{one.source}")
        for one in documents[::step]
        for name in ("a-copy-of-", "z-copy-of-")
    ]
    return [*documents, *copies]


def _words(rng: np.random.Generator, topic: int, count: int) -> list[str]:
    of_topic = [f"topic{topic}word{number}" for number in rng.integers(0, 40, count)]
    common = [f"common{number}" for number in rng.integers(0, 30, count)]
    return [
        one if choice else other for one, other, choice in zip(of_topic, common, rng.random(count) < 0.6, strict=True)
    ]


def few_first_vectors(monkeypatch: pytest.MonkeyPatch, n: int = 8) -> None:
    """Let a build that encodes later encode `n` documents, as with a large corpus."""
    for name, value in (("FIRST_DOCUMENTS", n), ("FEWEST_FIRST", 4), ("ALL_TOKENS", 0)):
        monkeypatch.setattr(f"indexer.generation.reference.{name}", value)
