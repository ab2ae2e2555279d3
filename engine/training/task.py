"""The interface of a training task, and what makes a step cheap: few documents with a graph, a frozen first stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from engine.encoders.backbone import inference
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, TrainableEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.text.segmentation import Chunk, Section

BatchT = TypeVar("BatchT")

Backward = Callable[[Tensor], None]  # adds the gradients of a loss; `Tensor.backward`, or a scaled one


class Task(Protocol, Generic[BatchT]):
    """A training objective with its data.

    Batches are a function of seed and step alone, so a run that is resumed at step n
    continues exactly as if it had never stopped.
    """

    @property
    def module(self) -> nn.Module:
        """All trained parameters, including heads that only training needs."""

    def batch(self, step: int) -> BatchT:
        """Draw the batch of a step, from 0."""

    def n_tokens(self, batch: BatchT) -> int:
        """Tokens of a batch that the encoder reads, counted once even if a step reads them several times."""

    def backward(self, batch: BatchT, backward: Backward) -> Mapping[str, float]:
        """Compute the loss of a batch and add its gradients to the parameters.

        Returns:
            The parts of the loss by name; "loss" is the total.
        """


def tokens_read(documents: Iterable[SegmentedDocument]) -> int:
    """Tokens of the chunks of some documents, without special tokens."""
    return sum(document.coverage.tokens_read for document in documents)


def step_generator(seed: int, step: int) -> np.random.Generator:
    """Random numbers of one step, the same in every run."""
    return np.random.default_rng([seed, step])


def epoch_slice(n: int, size: int, step: int, seed: int) -> list[int]:
    """The min(size, n) positions, out of n, that a step reads: each once per epoch, in a new order in every epoch.

    An incomplete batch at the end of an epoch is left out.
    """
    size = min(size, n)
    epoch, at = divmod(step, n // size)
    order = np.random.default_rng([seed, epoch, n]).permutation(n)
    return [int(position) for position in order[at * size : (at + 1) * size]]


def full_precision(device: torch.device) -> torch.autocast:
    """Turn autocast off inside the context, for the products of a loss and for heads that only a loss uses.

    A loss divides differences of cosines by a temperature of about 0.05. The three digits of
    bfloat16 are too few for these differences. Encoders return vectors in float32, but the
    caller may have to convert hidden states.
    """
    return torch.autocast(device.type, enabled=False)


def join(parts: Sequence[Embedded]) -> Embedded:
    """Concatenate batches; chunks are padded to the largest number of any document."""
    longest = max(part.chunks.shape[1] for part in parts)
    return Embedded(
        torch.cat([part.documents for part in parts]),
        torch.cat([pad(part.chunks, (0, 0, 0, longest - part.chunks.shape[1])) for part in parts]),
        torch.cat([pad(part.mask, (0, longest - part.mask.shape[1])) for part in parts]),
    )


def groups_of(
    documents: Sequence[SegmentedDocument], group_tokens: int | None
) -> Iterator[Sequence[SegmentedDocument]]:
    """Cut a batch, in its order, into groups of at most `group_tokens`; a longer document is a group by itself."""
    first = tokens = 0
    for position, document in enumerate(documents):
        more = sum(map(len, document.token_ids))
        if group_tokens is not None and position > first and tokens + more > group_tokens:
            yield documents[first:position]
            first, tokens = position, 0
        tokens += more
    yield documents[first:]


def backward_in_groups(
    encoder: TrainableEncoder,
    documents: Sequence[SegmentedDocument],
    loss: Callable[[Embedded], Tensor],
    backward: Backward,
    group_tokens: int | None,
) -> float:
    """Add the gradients of a loss over the vectors of a batch to the parameters; returns the loss.

    GradCache (Gao et al. 2021, arXiv:2101.06983, section 3.2): all vectors are first
    computed without a graph, and the loss gives the gradients of the vectors. Then each
    group is encoded again, with a graph, and its gradients are propagated to the
    parameters. Both passes use the same random numbers, so dropout is the same. The
    gradient is that of the whole batch, at the cost of one more forward pass. A batch of
    one group is encoded only once.
    """
    groups = list(groups_of(documents, group_tokens))
    if len(groups) == 1:
        value = loss(encoder.embed(documents))
        backward(value)
        return value.item()
    randomness: list[_RandomState] = []
    parts: list[Embedded] = []
    with torch.no_grad():
        for group in groups:
            randomness.append(_RandomState(encoder.module))
            parts.append(encoder.embed(group))
    # Autocast caches its copies of parameters, in older torch also copies made without a graph.
    torch.clear_autocast_cache()
    whole = join(parts)
    leaves = Embedded(whole.documents.requires_grad_(), whole.chunks.requires_grad_(), whole.mask)
    value = loss(leaves)
    backward(value)
    first = 0
    for group, state in zip(groups, randomness, strict=True):
        with state.again():
            _take_back(encoder.embed(group), leaves, slice(first, first + len(group)))
        first += len(group)
    return value.item()


def _take_back(part: Embedded, leaves: Embedded, rows: slice) -> None:
    """Propagate the gradients of some rows of the batch through the graph of their group."""
    vectors, gradients = [], []
    for own, leaf in ((part.documents, leaves.documents), (part.chunks, leaves.chunks)):
        if leaf.grad is not None and own.requires_grad:
            vectors.append(own)
            gradients.append(leaf.grad[rows] if own.dim() == 2 else leaf.grad[rows, : own.shape[1]])
    if vectors:
        torch.autograd.backward(vectors, gradients)


class _RandomState:
    """The state of torch's random generators, on the CPU and on the GPUs that hold parameters."""

    def __init__(self, module: nn.Module) -> None:
        indices = {parameter.device.index for parameter in module.parameters() if parameter.device.type == "cuda"}
        self.devices = sorted(index for index in indices if index is not None)
        self.cpu = torch.get_rng_state()
        self.cuda = [torch.cuda.get_rng_state(device) for device in self.devices]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw the same numbers again inside the context; afterwards the generators continue as before."""
        with torch.random.fork_rng(self.devices):
            torch.set_rng_state(self.cpu)
            for device, state in zip(self.devices, self.cuda, strict=True):
                torch.cuda.set_rng_state(state, device)
            yield


class FrozenFirstStage(TrainableEncoder):
    """An encoder whose first stage is computed once per document and never trained.

    Nearly all work of an encoder is its first stage, so a step costs a hundredth:
    the mode for machines without a GPU. The states of every document read are kept in half
    precision, 2 H bytes a chunk. The parameters that states depend on get no gradient,
    so they do not change.
    """

    def __init__(self, encoder: TrainableEncoder) -> None:
        """Wrap an encoder with a trained second stage.

        Raises:
            TrainingError: the second stage has no parameters.
        """
        if encoder.kind == "mean":
            raise _nothing_left(encoder)
        for weight in _first_stage(encoder):
            weight.requires_grad_(False)
        self._inner = encoder
        # The key includes the text: two corpora can use the same doc_id.
        self._states: dict[tuple[str, str], dict[Chunk, Tensor]] = {}
        self.kind = encoder.kind
        self.module = encoder.module
        self.name = encoder.name
        self.width = encoder.width
        self.device, self.reader = encoder.device, encoder.reader
        self.chunk_tokens = encoder.chunk_tokens

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the wrapped encoder."""
        return self._inner.fingerprint

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Always raises TrainingError: load the encoder, then wrap it."""
        raise TrainingError("load the encoder itself, then wrap it")

    def segment(self, document: Document) -> SegmentedDocument:
        """Segment with the wrapped encoder."""
        return self._inner.segment(document)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """States of the given chunks; computed for a whole document when it is first read."""
        stacked = []
        for document in documents:
            own = self._states.get(_key(document))
            if own is None or any(chunk not in own for chunk in document.chunks):
                own = self._read(document)
            stacked.append(torch.stack([own[chunk].float() for chunk in document.chunks]))
        return stacked

    def _read(self, document: SegmentedDocument) -> dict[Chunk, Tensor]:
        whole = self._inner.segment(document.document)
        with inference(self.module):
            states = self._inner.states([whole])[0].half()
        # Cloned outside inference mode, so that gradients can be recorded for results of these states.
        own = dict(zip(whole.chunks, states.clone().unbind(), strict=True))
        self._states[_key(document)] = own
        return own

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Combine with the wrapped encoder.

        Raises:
            TrainingError: gradients are recorded, but there is no parameter that could get one.
        """
        embedded = self._inner.combine(documents, states)
        if torch.is_grad_enabled() and not embedded.documents.requires_grad:
            raise _nothing_left(self._inner)
        return embedded

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the wrapped encoder."""
        self._inner.save_pretrained(folder, dtype=dtype)


def _first_stage(encoder: TrainableEncoder) -> list[nn.Parameter]:
    """The parameters that the state of a chunk depends on; some encoders use them in the second stage, too."""
    probe = encoder.segment(Document("", "", "a", (Section("", (), 0, 1),)))
    weights = [weight for weight in encoder.module.parameters() if weight.requires_grad]
    states = encoder.states([probe])[0]
    if not states.requires_grad:
        return []
    gradients = torch.autograd.grad(states.sum(), weights, allow_unused=True)
    return [weight for weight, gradient in zip(weights, gradients, strict=True) if gradient is not None]


def _nothing_left(encoder: TrainableEncoder) -> TrainingError:
    return TrainingError(
        f"this encoder of type {encoder.kind} has no parameters after its first stage, so nothing is left to train "
        "with that frozen; freeze some layers only, or begin with smith, colde or a tde with topics"
    )


def _key(document: SegmentedDocument) -> tuple[str, str]:
    return document.document.doc_id, document.document.text
