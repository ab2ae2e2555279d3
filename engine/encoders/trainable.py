"""An encoder with trainable parameters: documents in, vectors with gradients out.

It works in two stages. The first stage reads every chunk by itself, and is nearly all
of the cost. The second stage sees the chunks of one document together. Training
through both tunes all parameters; training on stored states of the first stage tunes
only the second.

Letters in shapes: B documents, C chunks of a document (padded to the most in the
batch), H width of a state, D width of a vector.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.encoders.backbone.batching import BatchReader
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, section_means
from engine.encoders.explanation import ModelExplanation
from engine.encoders.files import weight_shapes
from engine.errors import EncoderError
from engine.text.document import Document

ModuleT = TypeVar("ModuleT", bound=nn.Module)


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
    chunk_tokens: int  # most tokens of a chunk, special ones not counted
    reader: BatchReader  # reads the batches of the first stage
    note = ""  # meaning of the numbers that explain a match

    @property
    def n_read(self) -> int:
        """See `Encoder`."""
        return self.reader.n_read

    @property
    def tokens_at_once(self) -> int | None:
        """See `Encoder`."""
        return self.reader.limit

    @property
    def weights_bytes(self) -> int:
        """Bytes that the parameters take on `device`."""
        tensors = (*self.module.parameters(), *self.module.buffers())
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @classmethod
    @abstractmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote.

        Raises:
            EncoderError: a value of `config` is missing or of the wrong kind, or the parameters do not fit it.
        """

    @abstractmethod
    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write parameters (safetensors), tokenizer, configuration and model card, for `load_encoder`.

        Args:
            dtype: precision of the parameters on disk; by default that in memory, or, where
                nothing was trained since they were loaded, that of the files.
        """

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

    def inference(self) -> AbstractContextManager[None]:
        """No gradients and no dropout inside; see `inference` below."""
        return inference(self.module)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Encode documents without gradients or dropout; see `Encoder.encode_segmented`."""
        with self.inference():
            states = self.states(documents)
            return [self._combined(document, own) for document, own in zip(documents, states, strict=True)]

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        """See `Encoder.explain`, and the equations of `pairs`."""
        if self.cannot_explain is not None:
            raise EncoderError(self.cannot_explain)
        with self.inference():
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
        sides = ((side.document.document, side.document.chunks) for side in (query, target))
        (mine, my_chunks), (theirs, their_chunks) = sides
        return ModelExplanation.of_chunks(
            self.kind, self.note, (mine, my_chunks, own), (theirs, their_chunks, other), pairs
        )

    def from_chunks(self, document: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
        """The second stage by itself; see `Encoder.from_chunks`."""
        if not self.has_independent_chunks:
            return super().from_chunks(document, chunks)
        with self.inference():
            return self._combined(document, torch.from_numpy(chunks).to(self.device))

    def _combined(self, document: SegmentedDocument, states: Tensor) -> EncodedDocument:
        """The vectors of one document, given its states (C, H)."""
        embedded = self.combine([document], [states])
        chunks = embedded.chunks[0].float().cpu().numpy()
        return EncodedDocument(
            document=embedded.documents[0].float().cpu().numpy(),
            sections=section_means(document, chunks),
            chunks=chunks,
            chunk_spans=document.chunks,
            coverage=document.coverage,
        )


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """No gradients and no dropout inside; the training mode is restored afterwards."""
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        module.train(was_training)


def read_chunks(
    documents: Sequence[SegmentedDocument], read: Callable[[Sequence[Sequence[int]]], Tensor]
) -> list[Tensor]:
    """Read the chunks of all documents at once: N sequences to (N, H); for each document (C, H), its own C."""
    rows = read([ids for document in documents for ids in document.token_ids])
    return list(torch.split(rows, [len(document.chunks) for document in documents]))


def module_sha256(module: nn.Module) -> str:
    """SHA-256 over the names and float32 values of a module's parameters and buffers, on any device."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode() + b"\0" + np.ascontiguousarray(value.float().cpu().numpy()).tobytes())
    return digest.hexdigest()


def pad_chunks(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad the chunk rows of documents to the most chunks: (B, C, H) with zeros, and (B, C) bool, True where real."""
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


def save_weights(weights: Mapping[str, Tensor], file: Path, *, dtype: torch.dtype | None = None) -> None:
    """Write parameters by name, in another precision where one is given; integers stay integers."""
    save_file(
        {
            name: value.detach().to("cpu", dtype if value.is_floating_point() else None).contiguous()
            for name, value in weights.items()
        },
        file,
    )


def load_weights(make: Callable[[], ModuleT], file: Path) -> ModuleT:
    """Make a module with the parameters of a file that `save_weights` wrote.

    Shapes are compared before the module takes memory. The state of torch's random generator is kept.

    Raises:
        EncoderError: the file cannot be read, or holds parameters of other names or shapes.
    """
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            expected = {name: tuple(value.shape) for name, value in make().state_dict().items()}
        try:
            shapes = weight_shapes(file)
            for name in sorted(shapes.keys() | expected.keys()):
                if shapes.get(name) != expected.get(name):
                    raise EncoderError(
                        f"{file} has {name} of shape {shapes.get(name)}, the other files need {expected.get(name)}; "
                        "save the encoder again"
                    )
            module = make()
            module.load_state_dict(load_file(file))
        except (OSError, SafetensorError) as error:
            raise EncoderError(f"{file} cannot be read ({error}); save the encoder again") from error
    return module


class Loaded(NamedTuple):
    """The parameters that a module was loaded with; memory can hold them at a lower precision than files.

    Until it is trained, an encoder has the fingerprint of its files and is saved unchanged.
    """

    sha256: str  # of the parameters in the files
    n_changes: int  # of the module after rounding, see `n_changes`

    @classmethod
    def rounded(cls, module: nn.Module, round_weights: Callable[[], object]) -> Self:
        """Round parameters from the precision of their files to that in memory."""
        sha256 = module_sha256(module)
        round_weights()
        return cls(sha256, n_changes(module))

    def are_in(self, module: nn.Module) -> bool:
        """Whether the module still holds the loaded parameters."""
        return n_changes(module) == self.n_changes


def n_changes(module: nn.Module) -> int:
    """The number of writes to the parameters and buffers, as torch counts them for autograd."""
    return sum(value._version for value in (*module.parameters(), *module.buffers()))


def sha256_of(module: nn.Module, loaded: Loaded | None) -> str:
    """SHA-256 of a module's parameters; that of the files if the parameters are unchanged since they were loaded."""
    return loaded.sha256 if loaded is not None and loaded.are_in(module) else module_sha256(module)
