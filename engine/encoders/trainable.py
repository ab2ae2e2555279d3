"""An encoder with trainable parameters: documents in, vectors with gradients out.

It works in two stages. The first stage reads every chunk by itself, and is nearly all
of the cost. The second stage sees the chunks of one document together. Training
tunes the parameters of both.

Letters in shapes: B documents, C chunks of a document (padded to the most in the
batch), H width of a state, D width of a vector.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone import Backbone, Loaded, inference, sha256_of
from engine.encoders.cpu import KIND, WINDOW_TOKENS, MeanConfig
from engine.encoders.encoder import (
    EncodedDocument,
    Encoder,
    ModelExplanation,
    SegmentedDocument,
    Vectors,
    add_titles,
    fingerprint_of,
    section_means,
)
from engine.encoders.files import write_description
from engine.encoders.hardware import BatchReader, default_dtype
from engine.encoders.tokenizer import Tokenizer, chunk_document
from engine.errors import EncoderError
from engine.text.document import Document

TOKEN_BUDGET = 4096  # of one pass, padding counted; the fastest of 2048 to 16384 on two AVX-512 cores


class Attended(NamedTuple):
    """A document with what its encoder needs to explain a match."""

    document: SegmentedDocument
    attention: Tensor  # weights (C,) of its chunks, or their states (C, H)
    chunks: Tensor  # (C, D) unit rows


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a batch of documents, with gradients."""

    documents: Tensor  # (B, D) float32, unit rows
    chunks: Tensor  # (B, C, D) float32, unit rows, zero where padded
    mask: Tensor  # (B, C) bool, True where a chunk is real


class TrainableEncoder(Encoder):
    """An `Encoder` whose vectors are made by a torch module."""

    kind: str  # stored in `longmatch.json`
    module: nn.Module  # holds every parameter of both stages
    config: Any  # a dataclass, stored in `longmatch.json`
    tokenizer: Tokenizer
    chunk_tokens: int  # most tokens of a chunk, special ones not counted
    reader: BatchReader  # reads the batches of the first stage
    note = ""  # meaning of the numbers that explain a match
    card = ""  # model card, a format of `config`, `tokens` and `width`
    settings_of_training: tuple[str, ...] = ()  # vectors do not depend on these
    _loaded: Loaded | None = None

    @property
    def n_read(self) -> int:
        """See `Encoder`."""
        return self.reader.n_read

    @property
    def tokens_at_once(self) -> int | None:
        """See `Encoder`."""
        return self.reader.limit

    @classmethod
    @abstractmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote.

        Raises:
            EncoderError: a value of `config` is missing or of the wrong kind, or the parameters do not fit it.
        """

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write parameters (safetensors), tokenizer, configuration and model card, for `load_encoder`.

        Args:
            dtype: precision of the parameters on disk; by default that in memory, or, where
                nothing was trained since they were loaded, that of the files.
        """
        self.save_parameters(folder, dtype)
        self.name = self.name or str(folder)
        card = self.card.format(config=self.config, tokens=self.chunk_tokens, width=self.width)
        write_description(folder, self.settings(), card)

    def save_parameters(self, folder: Path, dtype: torch.dtype | None) -> None:
        """Write parameters and tokenizer; see `save_pretrained`."""
        raise NotImplementedError

    @property
    def rounded(self) -> nn.Module:
        """Holds the parameters that can have a lower precision in memory than in files."""
        return self.module

    def is_as_loaded(self, dtype: torch.dtype | None) -> bool:
        """Whether parameters are saved as a copy of their files."""
        return dtype is None and self._loaded is not None and self._loaded.are_in(self.rounded)

    def settings(self) -> dict[str, Any]:
        """The configuration, as it is saved."""
        return {"encoder": self.kind, **asdict(self.config)}

    @property
    def fingerprint(self) -> str:
        """See `Encoder` and `Loaded`; a trained BERT-base takes a second at each access."""
        settings = {name: value for name, value in self.settings().items() if name not in self.settings_of_training}
        return fingerprint_of({**settings, "tokenizer": self.tokenizer.sha256, **self.identity()})

    def identity(self) -> dict[str, Any]:
        """Checksums and settings that vectors depend on, besides configuration and tokenizer."""
        return {"weights": sha256_of(self.module, self._loaded)}

    @abstractmethod
    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """First stage: for each document the states (C, H) of its chunks, each read by itself.

        Without gradients its memory is bounded, whatever the number of chunks.
        """

    @abstractmethod
    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Second stage: the vectors of documents, given the states of all their chunks."""

    def embed(self, documents: Sequence[SegmentedDocument]) -> Embedded:
        """Both stages, with gradients where torch records them."""
        return self.combine(documents, self.states(documents))

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents without gradients or dropout; see `Encoder.encode_segmented`."""
        with inference(self.module):
            states = self.states(documents)
            return [self._combined(document, own) for document, own in zip(documents, states, strict=True)]

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        """See `Encoder.explain`, and the equations of `pairs`."""
        if self.cannot_explain is not None:
            raise EncoderError(self.cannot_explain)
        with inference(self.module):
            own = self.attended(self.segment(query))
            return [self._explanation(own, self.attended(self.segment(target))) for target in targets]

    def attended(self, document: SegmentedDocument) -> Attended:
        """What `pairs` needs of a document; for encoders that can explain."""
        raise NotImplementedError

    def pairs(self, query: Attended, target: Attended) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of the query's chunks (C,), of the target's (E,), and the numbers of their pairs (C, E)."""
        raise NotImplementedError

    def _explanation(self, query: Attended, target: Attended) -> ModelExplanation:
        own, other, pairs = (values.float().cpu().numpy() for values in self.pairs(query, target))
        mine, theirs = ((side.document.document, side.document.chunks) for side in (query, target))
        return ModelExplanation.of_chunks(self.kind, self.note, (*mine, own), (*theirs, other), pairs)

    def _combined(self, document: SegmentedDocument, states: Tensor) -> EncodedDocument:
        embedded = self.combine([document], [states])
        chunks = embedded.chunks[0].float().cpu().numpy()
        return EncodedDocument(
            document=embedded.documents[0].float().cpu().numpy(),
            sections=section_means(document, chunks),
            chunks=chunks,
            chunk_spans=document.chunks,
            coverage=document.coverage,
        )


def read_chunks(
    documents: Sequence[SegmentedDocument], read: Callable[[Sequence[Sequence[int]]], Tensor]
) -> list[Tensor]:
    """Read the chunks of all documents at once: N sequences to (N, H); for each document (C, H), its own C."""
    rows = read([ids for document in documents for ids in document.token_ids])
    return list(torch.split(rows, [len(document.chunks) for document in documents]))


def pad_chunks(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad the chunk rows of documents to the most chunks: (B, C, H) with zeros, and (B, C) bool, True where real."""
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


class BackboneEncoder(TrainableEncoder):
    """An encoder whose first stage reads each chunk with a backbone."""

    def __init__(self, backbone: Backbone, config: Any, *, name: str, chunk_tokens: int) -> None:  # noqa: ANN401
        """Chunks are lowered to what the backbone can read at once."""
        self.backbone, self.tokenizer = backbone, backbone.tokenizer
        self.device, self.reader = backbone.device, backbone.reader
        self.config, self.name = config, name
        self.chunk_tokens = min(chunk_tokens, backbone.max_tokens)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The unit vectors of the backbone; chunks of all documents share batches."""
        return read_chunks(documents, lambda sequences: self.backbone.embed(sequences, TOKEN_BUDGET))

    def round_to(self, dtype: torch.dtype | None) -> Self:
        """This encoder, just loaded in float32, with its backbone at the precision in memory."""
        dtype = dtype or default_dtype(self.device)
        self._loaded = Loaded.rounded(self.rounded, lambda: self.backbone.round_to(dtype))
        return self

    def save_parameters(self, folder: Path, dtype: torch.dtype | None) -> None:
        """Write backbone and tokenizer; see `TrainableEncoder.save_pretrained`."""
        self.backbone.save_pretrained(folder, dtype=None if self.is_as_loaded(dtype) else dtype or self.backbone.dtype)


class MeanEncoder(BackboneEncoder):
    """Reads every token of a document in windows of whole sentences.

    With v_c the backbone's vector of chunk c and n_c its tokens, the vector of a
    section (and of the document) is

        v = unit(sum_c n_c v_c)

    over its chunks, the token-weighted mean. The first chunk says the title too, see
    `add_titles`, but not in training. It has no parameters besides those of the backbone.
    """

    kind = KIND

    def __init__(self, backbone: Backbone, *, name: str = "", window_tokens: int = WINDOW_TOKENS) -> None:
        """Wrap a backbone; windows are lowered to what it can read at once."""
        config = MeanConfig(min(window_tokens, backbone.max_tokens), backbone.pooling)
        super().__init__(backbone, config, name=name or str(backbone.folder), chunk_tokens=config.window_tokens)
        self.module: nn.Module = backbone.model
        self.width = backbone.width
        self._loaded = backbone.loaded

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        made = MeanConfig.of(config, folder)
        backbone = Backbone(folder, device=device, dtype=dtype, pooling=made.pooling)
        return cls(backbone, name=name, window_tokens=made.window_tokens)

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into windows of whole sentences; see `Encoder.segment`."""
        return chunk_document(document, self.tokenizer, self.chunk_tokens, self.chunk_tokens)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents with their titles; see `Encoder.encode_segmented`."""
        named = [document.title_ids for document in documents if document.title_ids]
        with inference(self.module):
            titles: Iterable[Vectors] = self.backbone.embed(named, TOKEN_BUDGET).float().cpu().numpy() if named else ()
            chunks = [rows.float().cpu().numpy() for rows in self.states(documents)]
            return [
                self._combined(document, torch.from_numpy(own).to(self.device))
                for document, own in zip(documents, add_titles(documents, chunks, titles), strict=True)
            ]

    def identity(self) -> dict[str, Any]:
        """See `TrainableEncoder.identity`."""
        return {"title": True, **super().identity()}

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Chunk vectors are the states; see the equation of the class."""
        chunks, mask = pad_chunks([state.float() for state in states])
        tokens, _ = pad_chunks(
            [
                torch.tensor([chunk.n_tokens for chunk in document.chunks], dtype=chunks.dtype, device=chunks.device)
                for document in documents
            ]
        )
        return Embedded(normalize((chunks * tokens.unsqueeze(-1)).sum(1), dim=-1), chunks, mask)

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write backbone, configuration and model card; see `TrainableEncoder.save_pretrained`."""
        self.save_parameters(folder, dtype)
        self.config.describe(folder, self.backbone.sha256)
