"""The interface of a training task, and steps in the memory of a few documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, TrainableEncoder

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
