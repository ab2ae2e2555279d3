"""The interface of an encoder, and the values that pass through it; no model here.

Letters in shapes: S and T sections of the query and of the target, C and E their chunks, D width.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SegmentedDocument:
    """A document cut into chunks, with the token ids that the encoder will read."""

    document: Document
    chunks: tuple[Chunk, ...]
    token_ids: tuple[Sequence[int], ...]  # one sequence for each chunk, without special tokens
    coverage: Coverage
    title_ids: Sequence[int] = ()  # tokens of the title, which an encoder may read with the first chunk


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """The vectors of one document; all rows are unit length, in one space."""

    document: Vectors  # (D,)
    sections: Vectors  # (S, D)
    chunks: Vectors  # (C, D), in reading order
    chunk_spans: tuple[Chunk, ...]  # of the C chunks
    coverage: Coverage

    @classmethod
    def unencoded(cls, width: int, n_tokens: int = 0) -> EncodedDocument:
        """A placeholder for a document of about `n_tokens` without vectors; width 0 where no encoder is known."""
        nothing = np.empty((0, width), np.float32)
        return cls(np.zeros(width, np.float32), nothing, nothing, (), Coverage(0, n_tokens))


class Pooling(StrEnum):
    """How the hidden states of a sequence become one vector."""

    MEAN = "mean"  # over all tokens, special ones included, as in Sentence-BERT
    CLS = "cls"  # the first token, as in BERT and SimCSE


class Encoder(ABC):
    """Text to vectors, the same way for queries and targets (siamese)."""

    name: str  # the name by which `load_encoder` loads this encoder
    width: int
    device: str = "cpu"  # where it encodes: cpu, cuda or cuda:N
    takes_threads: bool = False  # whether several threads may encode at a time

    @property
    def n_read(self) -> int:
        """Chunks read so far, counted while documents are encoded; 0 for an encoder that does not count."""
        return 0

    @property
    def tokens_at_once(self) -> int | None:
        """Most tokens of a batch, if batches were made smaller to fit into the GPU; None if they were not."""
        return None

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Equal if and only if the vectors of two encoders can be compared; training changes it."""

    @abstractmethod
    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into the chunks that will be encoded.

        Raises:
            DocumentError: the document has no token.
        """

    @abstractmethod
    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents that this encoder segmented; the order is kept."""

    def expect(self, n_tokens: int) -> None:  # noqa: B027 - most encoders report to nobody
        """Called before documents of an index are encoded block by block; does nothing by default."""

    def encode(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Encode documents, whatever their length; the order is kept.

        Raises:
            DocumentError: some document has no token.
        """
        return self.encode_segmented([self.segment(document) for document in documents])

    @property
    def cannot_explain(self) -> str | None:
        """Why `explain` has nothing to return, and the next step; None for an encoder that can explain itself."""
        return (
            f"encoder {self.name!r} computes nothing by itself that explains a match; encoders of the kinds colde and "
            "smith do: train one (longmatch train OUT CORPUS --new colde) and index with it, or take the evidence"
        )

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        """The encoder's own numbers for the sections and chunks of a query and of each target, which are encoded again.

        Raises:
            DocumentError: a document has no token.
            EncoderError: see `cannot_explain`.
        """
        raise EncoderError(self.cannot_explain)

    @abstractmethod
    def save_pretrained(self, folder: Path) -> None:
        """Write parameters (safetensors), tokenizer, configuration and model card into a folder."""


def segmented(encoder: Encoder, document: Document) -> SegmentedDocument | None:
    """A document as an encoder cuts it; None if it has no token."""
    try:
        return encoder.segment(document)
    except DocumentError:
        return None


def unit(rows: Vectors) -> Vectors:
    """Scale each row to unit length; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Vectors = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
    return scaled


class Variant(StrEnum):
    """The source that an encoder follows where the paper and its authors' code differ or have faults."""

    PAPER = "paper"  # the paper's text
    RELEASED = "released"  # the code that its authors published
    FIXED = "fixed"  # ours, with the faults of both repaired


def section_means(segmented: SegmentedDocument, chunks: Vectors) -> Vectors:
    """(S, D) unit token-weighted means of the chunks of each section; zero where a section has none."""
    tokens = np.array([chunk.n_tokens for chunk in segmented.chunks], np.float32)
    sections = np.zeros((len(segmented.document.sections), chunks.shape[1]), np.float32)
    np.add.at(sections, [chunk.section for chunk in segmented.chunks], chunks * tokens[:, None])
    return unit(sections)


def add_titles(
    documents: Sequence[SegmentedDocument], chunks: Sequence[Vectors], titles: Iterable[Vectors]
) -> list[Vectors]:
    """The vectors (C, D) of the chunks of documents, where the first of a document says its title too.

        c_0 = unit(c_0 + t)

    with the unit vector t of the title.

    Args:
        titles: (D,) of each document with tokens of a title, in their order.
    """
    rows = iter(titles)
    return [
        np.concatenate([unit(own[:1] + next(rows)), own[1:]]) if document.title_ids else own
        for document, own in zip(documents, chunks, strict=True)
    ]


def token_weighted_means(segmented: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
    """The vectors of a document whose document and sections are token-weighted means of its chunks (C, D)."""
    n_tokens = np.array([chunk.n_tokens for chunk in segmented.chunks], np.float32)
    return EncodedDocument(
        document=unit(n_tokens @ chunks),
        sections=section_means(segmented, chunks),
        chunks=chunks,
        chunk_spans=segmented.chunks,
        coverage=segmented.coverage,
    )


def fingerprint_of(description: Mapping[str, Any]) -> str:
    """32 hex digits; equal for equal descriptions of parameters, tokenizer and settings."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, repr=False)
class ModelExplanation:
    """The numbers of an encoder for a query and a target, by chunk and by section; `note` explains them.

    They are not parts of the score of a hit, which `Hit.breakdown` has. Section pairs are sums of
    chunk pairs and sections are sums of chunks, so `pairs` and `chunk_pairs` both sum to `total`.
    A section without a token has zeros. All arrays are float32.
    """

    encoder: str  # its kind: colde, smith
    note: str  # meaning of the numbers, and what they sum to
    query_chunks: tuple[Chunk, ...]  # C, with section and span
    target_chunks: tuple[Chunk, ...]  # E
    query_weights: NDArray[np.float32]  # (C,) of the chunks of the query
    target_weights: NDArray[np.float32]  # (E,)
    chunk_pairs: NDArray[np.float32]  # (C, E)
    query_sections: NDArray[np.float32]  # (S,)
    target_sections: NDArray[np.float32]  # (T,)
    pairs: NDArray[np.float32]  # (S, T)

    @classmethod
    def of_chunks(
        cls,
        encoder: str,
        note: str,
        query: tuple[Document, Sequence[Chunk], NDArray[np.float32]],
        target: tuple[Document, Sequence[Chunk], NDArray[np.float32]],
        chunk_pairs: NDArray[np.float32],
    ) -> Self:
        """Sum chunk pairs (C, E) over sections; a side is a document, its chunks and their weights (C,) or (E,)."""
        (mine, my_chunks, my_weights), (theirs, their_chunks, their_weights) = query, target
        rows = _by_section(chunk_pairs, my_chunks, len(mine.sections))  # (S, E)
        return cls(
            encoder,
            note,
            tuple(my_chunks),
            tuple(their_chunks),
            my_weights,
            their_weights,
            chunk_pairs,
            _by_section(my_weights, my_chunks, len(mine.sections)),
            _by_section(their_weights, their_chunks, len(theirs.sections)),
            _by_section(rows.T, their_chunks, len(theirs.sections)).T,
        )

    @property
    def total(self) -> float:
        """The sum of all pairs."""
        return float(self.pairs.sum(dtype=np.float64))

    def __repr__(self) -> str:
        n_rows, n_columns = self.pairs.shape
        return f"ModelExplanation({self.encoder!r}, {n_rows} x {n_columns} sections, total {self.total:.4f})"


@dataclass(frozen=True, slots=True)
class ModelPair:
    """A section pair of an explanation."""

    query_section: int
    target_section: int
    value: float


def strongest_pairs(explanation: ModelExplanation, n: int | None = None) -> list[ModelPair]:
    """`strongest` of an explanation."""
    return strongest(explanation.pairs, n)


def strongest(values: NDArray[np.floating], n: int | None = None) -> list[ModelPair]:
    """The section pairs (S, T) above 0, strongest first; equal values in reading order, at most `n`."""
    order = np.argsort(-values, axis=None, kind="stable")[:n]
    places = zip(*np.unravel_index(order, values.shape), strict=True)
    found = [ModelPair(int(row), int(column), float(values[row, column])) for row, column in places]
    return [pair for pair in found if pair.value > 0]


def _by_section(values: NDArray[np.float32], chunks: Sequence[Chunk], n_sections: int) -> NDArray[np.float32]:
    """(C, ...) summed over the chunks of each section: (n_sections, ...)."""
    summed = np.zeros((n_sections, *values.shape[1:]), np.float64)
    np.add.at(summed, [chunk.section for chunk in chunks], values)
    return summed.astype(np.float32)
