"""Published SimCSE, Contriever, CT and SBERT models as encoders of the first tokens, or of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import torch

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import (
    EncodedDocument,
    Encoder,
    Pooling,
    SegmentedDocument,
    fingerprint_of,
    token_weighted_means,
)
from engine.encoders.files import (
    MODEL_FILES,
    resolve_backbone,
    tokenizer_sha256,
)
from engine.encoders.loading import load_encoder, load_trainable
from engine.encoders.mean import TOKEN_BUDGET
from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage

FIRST_TOKENS = 512  # that every model in the tables of DocSplit reads of a document (Findings of EMNLP 2023)


class Reading(StrEnum):
    """How a document longer than the limit of the model is read."""

    FIRST = "first"  # only its first tokens, as one chunk: as published
    CHUNKS = "chunks"  # all of it, in windows of whole sentences, as longmatch's encoders do


@dataclass(frozen=True, slots=True)
class GivenModel:
    """The requirements of a family of published models."""

    pooling: Pooling
    chunk_tokens: int  # the length of training, special tokens counted


MODELS: Mapping[str, GivenModel] = {
    # Gao et al. (2021): trained with an MLP over [CLS], used without it; the authors' tool truncates at 128.
    "simcse": GivenModel(Pooling.CLS, 128),
    # Izacard et al. (2022): trained on texts of 256 tokens.
    "contriever": GivenModel(Pooling.MEAN, 256),
    # Carlsson et al. (2021): trained on sentences, and the code does not truncate; 128 is our choice.
    "ct": GivenModel(Pooling.MEAN, 128),
    # Reimers & Gurevych (2019): 128 is our choice.
    "sbert": GivenModel(Pooling.MEAN, 128),
}


class GivenEncoder(Encoder):
    """A chunk model over long documents.

    With v_c the unit vector of chunk c and n_c its tokens, sections and the document are
    unit(sum_c n_c v_c). All have unit length, as an index requires, so that documents are
    compared by the cosine; the authors of Contriever use the dot product.
    """

    def __init__(self, model: Backbone, kind: str, reading: Reading, *, name: str) -> None:
        """Wrap a model of a kind in `MODELS`; `name` is the argument of `load_given`."""
        self.model = model
        self.kind = kind
        self.reading = reading
        self.name = name
        self.width = model.width
        asked = FIRST_TOKENS if reading is Reading.FIRST else MODELS[kind].chunk_tokens
        self.chunk_tokens = min(asked - model.tokenizer.n_special, model.max_tokens)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of parameters, tokenizer, and how documents are read; see `Encoder`."""
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
        # The chunk can extend over several sections; it belongs to the section of its first token.
        section = next(at for at, section in enumerate(document.sections) if start < section.stop)
        chunk = Chunk(section, start, stop, n_tokens)
        return SegmentedDocument(document, (chunk,), (tuple(ids[:n_tokens]),), Coverage(n_tokens, len(ids)))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents, with chunks of several documents in a batch; see `Encoder.encode_segmented`."""
        rows = self.model.encode([ids for document in documents for ids in document.token_ids], TOKEN_BUDGET)
        encoded, first = [], 0
        for document in documents:
            chunks = rows[first : first + len(document.chunks)]
            first += len(document.chunks)
            encoded.append(token_weighted_means(document, chunks))
        return encoded

    def save_pretrained(self, folder: Path) -> None:
        """Copy the model's files; how they are read is only in the name, `FOLDER:MODEL-READING`."""
        for file in sorted(self.model.folder.rglob("*")):
            if file.is_file() and file.suffix in MODEL_FILES:
                copy = folder / file.relative_to(self.model.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes())


def load_given(name: str, *, device: str | None = None, dtype: torch.dtype | None = None) -> Encoder:
    """Load a published model by `WEIGHTS:MODEL-READING`, or any other name by `engine.load_encoder`."""
    weights, colon, asked = name.rpartition(":")
    if not colon or Path(name).is_dir():
        return load_trainable(name, device=device, dtype=dtype) if dtype else load_encoder(name, device=device)
    kind, _, reading = asked.rpartition("-")
    if kind not in MODELS or reading not in list(Reading):
        raise EncoderError(
            f"encoder {name!r} asks for {asked!r} behind the colon, not for one of {', '.join(MODELS)} and one of "
            f"{', '.join(Reading)}, as in facebook/contriever:contriever-first"
        )
    model = Backbone(resolve_backbone(weights), device=device, dtype=dtype, pooling=MODELS[kind].pooling)
    return GivenEncoder(model, kind, Reading(reading), name=name)
