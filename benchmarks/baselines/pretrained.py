"""Published sentence encoders with given weights, each read as its authors read it: pooling, prefix, length.

An encoder is named `WEIGHTS:MODEL-READING`: a folder or a hub name, one of `MODELS`, and
`first` or `chunks`, as in `facebook/contriever:contriever-first`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import torch

from benchmarks.baselines.chunk_models import ChunkModel, PooledBackbone
from benchmarks.baselines.instructor import Instructor
from engine.document import Chunk, Coverage, Document
from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.backbone.weights import MODEL_FILES, resolve_backbone, tokenizer_sha256
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.encoders.loading import load_encoder
from engine.encoders.mean import TOKEN_BUDGET
from engine.encoders.trainable import fingerprint_of, section_means
from engine.errors import DocumentError, EncoderError

FIRST_TOKENS = 512  # read of a document by every model in the tables of DocSplit (Findings of EMNLP 2023)


class Reading(StrEnum):
    """How a document longer than the model is read."""

    FIRST = "first"  # its first tokens as one chunk, the rest not at all: as published
    CHUNKS = "chunks"  # all of it in windows of whole sentences, as our own encoders do


@dataclass(frozen=True, slots=True)
class GivenModel:
    """What a family of published weights asks for."""

    load: Callable[[Path, str | None, torch.dtype | None], ChunkModel]  # folder, device, precision
    chunk_tokens: int  # the length it was made for, special tokens and prefix counted


def _mean(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Backbone(folder, device=device, dtype=dtype, pooling=Pooling.MEAN)


def _first_token(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Backbone(folder, device=device, dtype=dtype, pooling=Pooling.CLS)


def _pooler(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return PooledBackbone(folder, device=device, dtype=dtype)


def _instructor(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Instructor(folder, device=device, dtype=dtype)


MODELS: Mapping[str, GivenModel] = {
    # Gao et al. (2021): trained with an MLP over [CLS] and used without it; cut at 128 by their tool.
    "simcse": GivenModel(_first_token, 128),
    # The supervised ones are used with it.
    "simcse-sup": GivenModel(_pooler, 128),
    # Izacard et al. (2022): trained on texts of 256 tokens.
    "contriever": GivenModel(_mean, 256),
    # Carlsson et al. (2021): nothing is cut by their code, which was trained on sentences; 128 is ours.
    "ct": GivenModel(_mean, 128),
    # Reimers & Gurevych (2019): 128 is ours.
    "sbert": GivenModel(_mean, 128),
    # Su et al. (2023).
    "instructor": GivenModel(_instructor, 512),
}


class GivenEncoder(Encoder):
    """A chunk model over long documents.

    With v_c the unit vector of chunk c and n_c its tokens, sections and the document are
    unit(sum_c n_c v_c). All are of unit length, as an index asks for, so that documents are
    compared by the cosine; the authors of Contriever take the dot product.
    """

    def __init__(self, model: ChunkModel, kind: str, reading: Reading, *, name: str) -> None:
        """Wrap a model of a kind in `MODELS`; `name` is what `load_given` took."""
        self.model = model
        self.kind = kind
        self.reading = reading
        self.name = name
        self.width = model.width
        asked = FIRST_TOKENS if reading is Reading.FIRST else MODELS[kind].chunk_tokens
        self.chunk_tokens = min(asked - model.tokenizer.n_special, model.max_tokens)

    @property
    def fingerprint(self) -> str:
        """Of weights, tokenizer, and how documents are read; see `Encoder`."""
        how = {"given": self.kind, "reading": self.reading, "chunk_tokens": self.chunk_tokens}
        read_by = {"weights": self.model.sha256, "tokenizer": tokenizer_sha256(self.model.folder)}
        return fingerprint_of({**how, **read_by})

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document; see `Encoder.segment`."""
        if self.reading is Reading.CHUNKS:
            return chunk_document(document, self.model.tokenizer, self.chunk_tokens)
        ((ids, offsets),) = self.model.tokenizer.tokenize([document.text])
        if not ids:
            raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
        n_tokens = min(len(ids), self.chunk_tokens)
        start, stop = offsets[0][0], offsets[n_tokens - 1][1]
        # It may run on into further sections, and stands in that of its first token.
        section = next(at for at, section in enumerate(document.sections) if start < section.stop)
        chunk = Chunk(section, start, stop, n_tokens)
        return SegmentedDocument(document, (chunk,), (tuple(ids[:n_tokens]),), Coverage(n_tokens, len(ids)))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents, the chunks of all in common batches; see `Encoder.encode_segmented`."""
        rows = self.model.encode([ids for document in documents for ids in document.token_ids], TOKEN_BUDGET)
        encoded, first = [], 0
        for document in documents:
            chunks = rows[first : first + len(document.chunks)]
            first += len(document.chunks)
            encoded.append(_encoded(document, chunks))
        return encoded

    def save_pretrained(self, folder: Path) -> None:
        """Copy the given files; how they are read stands in a name alone, `FOLDER:MODEL-READING`."""
        for file in sorted(self.model.folder.rglob("*")):
            if file.is_file() and file.suffix in MODEL_FILES:
                copy = folder / file.relative_to(self.model.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes())


def _encoded(segmented: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
    tokens = np.array([chunk.n_tokens for chunk in segmented.chunks], np.float32)
    return EncodedDocument(
        document=unit(tokens @ chunks),
        sections=section_means(segmented, chunks),
        chunks=chunks,
        chunk_spans=segmented.chunks,
        coverage=segmented.coverage,
    )


def load_given(name: str, *, device: str | None = None, dtype: torch.dtype | None = None) -> Encoder:
    """Load given weights by `WEIGHTS:MODEL-READING`, or whatever `engine.load_encoder` takes by another name.

    Raises:
        EncoderError: the name asks for a model or a reading that is not known, or weights cannot be found or loaded.
    """
    weights, colon, asked = name.rpartition(":")
    if not colon or Path(name).is_dir():
        return load_encoder(name, device=device, dtype=dtype)
    kind, _, reading = asked.rpartition("-")
    if kind not in MODELS or reading not in list(Reading):
        raise EncoderError(
            f"encoder {name!r} asks for {asked!r} behind the colon, not for one of {', '.join(MODELS)} and one of "
            f"{', '.join(Reading)}, as in facebook/contriever:contriever-first"
        )
    model = MODELS[kind].load(resolve_backbone(weights), device, dtype)
    return GivenEncoder(model, kind, Reading(reading), name=name)
