"""Published SimCSE, Contriever, CT, SBERT and INSTRUCTOR models as encoders of the first tokens, or of chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import linear, normalize

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.batching import BatchReader, group_by_length
from engine.encoders.backbone.hardware import default_device, default_dtype, set_up_kernels
from engine.encoders.backbone.model_folder import quiet_transformers
from engine.encoders.backbone.tokenizer import Tokenizer
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
    MODEL_FILES,
    read_json,
    resolve_backbone,
    tokenizer_sha256,
    weight_shapes,
    weights_sha256,
)
from engine.encoders.loading import load_encoder, load_trainable
from engine.encoders.mean import TOKEN_BUDGET
from engine.encoders.trainable import inference
from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage

# By the template of INSTRUCTOR's authors; queries and targets are both documents here, so both have it.
INSTRUCTION = "Represent the document for retrieval: "
MAX_TOKENS = 512  # at which INSTRUCTOR was trained, the instruction counted
_DENSE = Path("2_Dense")


class Instructor:
    """A `ChunkModel` over the folder of a published INSTRUCTOR.

    With h_t the last hidden states of instruction, text and </s>, as in the released
    code (xlang-ai/instructor-embedding, commit 188ee78):

        v = unit(W mean_t h_t)

    over the tokens t after the instruction, including </s>. The instruction is
    tokenized by itself, which gives the same ids as "instruction text" with a space between.
    """

    def __init__(
        self,
        folder: Path,
        *,
        device: str | None = None,
        dtype: torch.dtype | None = None,
        instruction: str = INSTRUCTION,
    ) -> None:
        """Load parameters from a folder.

        Raises:
            EncoderError: not a folder of an INSTRUCTOR with parameters in safetensors, or the instruction leaves no
                tokens for a text.
        """
        set_up_kernels()
        self.folder = folder
        self.device = device or default_device()
        self.tokenizer = Tokenizer(folder)  # also checks the folder
        weights = weights_sha256(folder) + weights_sha256(_dense_folder(folder))
        self.sha256 = hashlib.sha256(f"{weights}\0{instruction}".encode()).hexdigest()
        dtype = dtype or default_dtype(self.device)
        self.model: Any = _load_t5(folder, dtype).to(self.device).eval()
        self.tokenizer.check_ids(len(self.model.get_input_embeddings().weight))
        self._dense = _load_dense(folder).to(self.device)  # (D, H)
        self.width = len(self._dense)
        self._reader = BatchReader()
        ((self._prefix, _),) = self.tokenizer.tokenize([instruction])
        self.max_tokens = MAX_TOKENS - self.tokenizer.n_special - len(self._prefix)
        if self.max_tokens < 1:
            raise EncoderError(
                f"the instruction {instruction!r:.80} has {len(self._prefix)} tokens of {MAX_TOKENS}; shorten it"
            )

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """As `Backbone.encode`."""
        if not sequences:
            return torch.empty((0, self.width)).numpy()
        n_around = len(self._prefix) + self.tokenizer.n_special
        group = group_by_length([len(sequence) + n_around for sequence in sequences])

        def read(batch: Sequence[int]) -> Tensor:
            return self._read([sequences[position] for position in batch])

        with inference(self.model):
            rows: Vectors = self._reader.read(len(sequences), token_budget, group, read).numpy()
        return rows

    def _read(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = self.tokenizer.pad([[*self._prefix, *sequence] for sequence in sequences])
        ids, mask = ids.to(self.device), mask.to(self.device)
        hidden = self.model(input_ids=ids, attention_mask=mask.long())[0].float()  # (B, L, H)
        counted = mask.clone()
        counted[:, : len(self.tokenizer.prefix) + len(self._prefix)] = False
        weights = counted.unsqueeze(-1).float()
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return normalize(linear(mean, self._dense), dim=-1).cpu()


def _dense_folder(folder: Path) -> Path:
    if not (folder / _DENSE).is_dir():
        raise EncoderError(f"{folder} holds no folder {_DENSE}, as INSTRUCTOR has one; take one of hkunlp/instructor-*")
    return folder / _DENSE


def _load_t5(folder: Path, dtype: torch.dtype) -> Any:  # noqa: ANN401
    from transformers import T5EncoderModel  # takes seconds to import

    with quiet_transformers():
        try:
            model, report = T5EncoderModel.from_pretrained(
                folder, dtype=dtype, use_safetensors=True, output_loading_info=True
            )
        except Exception as error:  # transformers raises many types of errors for a damaged folder
            reason = " ".join(str(error).split()) or type(error).__name__
            raise EncoderError(
                f"{folder} cannot be loaded as INSTRUCTOR: {reason}; take the published folder"
            ) from error
    if report["missing_keys"]:
        missing = min(report["missing_keys"])
        raise EncoderError(
            f"{folder} cannot be loaded as INSTRUCTOR: its weights lack {missing}; take the published folder"
        )
    return model


def _load_dense(folder: Path) -> Tensor:
    config = read_json(folder / _DENSE / "config.json")
    if not isinstance(config, dict) or config.get("bias") or "Identity" not in str(config.get("activation_function")):
        raise EncoderError(f"{folder / _DENSE} is no matrix alone, as that of INSTRUCTOR is; take the published folder")
    file = folder / _DENSE / "model.safetensors"
    try:
        weight: Tensor = load_file(file)["linear.weight"]
    except (OSError, SafetensorError, KeyError) as error:
        raise EncoderError(f"{file} cannot be read ({error}); take the published folder") from error
    return weight.float()


FIRST_TOKENS = 512  # that every model in the tables of DocSplit reads of a document (Findings of EMNLP 2023)


class Reading(StrEnum):
    """How a document longer than the limit of the model is read."""

    FIRST = "first"  # only its first tokens, as one chunk: as published
    CHUNKS = "chunks"  # all of it, in windows of whole sentences, as longmatch's encoders do


@dataclass(frozen=True, slots=True)
class GivenModel:
    """The requirements of a family of published models."""

    load: Callable[[Path, str | None, torch.dtype | None], ChunkModel]  # folder, device, precision
    chunk_tokens: int  # the length of training, special tokens and prefix counted


def _mean(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Backbone(folder, device=device, dtype=dtype, pooling=Pooling.MEAN)


def _first_token(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Backbone(folder, device=device, dtype=dtype, pooling=Pooling.CLS)


def _pooler(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return PooledBackbone(folder, device=device, dtype=dtype)


def _instructor(folder: Path, device: str | None, dtype: torch.dtype | None) -> ChunkModel:
    return Instructor(folder, device=device, dtype=dtype)


MODELS: Mapping[str, GivenModel] = {
    # Gao et al. (2021): trained with an MLP over [CLS], used without it; the authors' tool truncates at 128.
    "simcse": GivenModel(_first_token, 128),
    # The supervised models are used with the MLP.
    "simcse-sup": GivenModel(_pooler, 128),
    # Izacard et al. (2022): trained on texts of 256 tokens.
    "contriever": GivenModel(_mean, 256),
    # Carlsson et al. (2021): trained on sentences, and the code does not truncate; 128 is our choice.
    "ct": GivenModel(_mean, 128),
    # Reimers & Gurevych (2019): 128 is our choice.
    "sbert": GivenModel(_mean, 128),
    # Su et al. (2023).
    "instructor": GivenModel(_instructor, 512),
}


class GivenEncoder(Encoder):
    """A chunk model over long documents.

    With v_c the unit vector of chunk c and n_c its tokens, sections and the document are
    unit(sum_c n_c v_c). All have unit length, as an index requires, so that documents are
    compared by the cosine; the authors of Contriever use the dot product.
    """

    def __init__(self, model: ChunkModel, kind: str, reading: Reading, *, name: str) -> None:
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
    """Load a published model by `WEIGHTS:MODEL-READING`, or any other name by `engine.load_encoder`.

    Raises:
        EncoderError: the model or the reading in the name is unknown, or the files cannot be found or loaded.
    """
    weights, colon, asked = name.rpartition(":")
    if not colon or Path(name).is_dir():
        return load_trainable(name, device=device, dtype=dtype) if dtype else load_encoder(name, device=device)
    kind, _, reading = asked.rpartition("-")
    if kind not in MODELS or reading not in list(Reading):
        raise EncoderError(
            f"encoder {name!r} asks for {asked!r} behind the colon, not for one of {', '.join(MODELS)} and one of "
            f"{', '.join(Reading)}, as in facebook/contriever:contriever-first"
        )
    model = MODELS[kind].load(resolve_backbone(weights), device, dtype)
    return GivenEncoder(model, kind, Reading(reading), name=name)


_POOLER = "pooler.dense.weight"


class ChunkModel(Protocol):
    """The interface of a model of chunks; `Backbone` has it."""

    @property
    def folder(self) -> Path:
        """The folder of parameters and tokenizer."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model."""

    @property
    def width(self) -> int:
        """D, the length of a vector."""

    @property
    def max_tokens(self) -> int:
        """The most tokens of a sequence, not counting the instruction and special tokens added around it."""

    @property
    def sha256(self) -> str:
        """The checksum of everything that a vector depends on, except tokens and pooling."""

    def encode(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Vectors:
        """(N, D) unit rows, as `Backbone.encode`."""


class PooledBackbone(Backbone):
    """A BERT with its own pooler: a vector is tanh(W h + b), with h the hidden state of [CLS]."""

    def __init__(self, folder: Path, *, device: str | None = None, dtype: torch.dtype | None = None) -> None:
        """Load parameters from a folder.

        Raises:
            EncoderError: not a model folder, or it has no parameters of a pooler.
        """
        super().__init__(folder, device=device, dtype=dtype, pooling=Pooling.CLS)
        names = [name for file in folder.glob("*.safetensors") for name in weight_shapes(file)]
        if not any(name.endswith(_POOLER) for name in names):
            raise EncoderError(
                f"{folder} holds no {_POOLER}, without which its vectors would be random; read it as simcse"
            )

    def pool(self, sequences: Sequence[Sequence[int]], token_budget: int) -> Tensor:
        """As `Backbone.pool`."""
        first = super().pool(sequences, token_budget)  # (N, D)
        pooled: Tensor = self.model.pooler(first.unsqueeze(1).to(self.dtype))
        return pooled.float()
