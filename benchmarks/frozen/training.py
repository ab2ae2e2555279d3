"""Trains a layer over frozen chunk vectors; steps alternate between corpora.

Letters in shapes: B documents, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from benchmarks.datasets import DatasetError
from benchmarks.frozen.corpora import FrozenCorpus, Vectors
from benchmarks.frozen.layers import LAYERS, MAX_CHUNKS, DocumentLayer

_TEMPERATURE = 0.07
_QUERIES = 24  # in a batch of pairs or sections
_RANKED = 6  # queries in a batch of rankings
_TEACHER = 0.03  # temperature of joint scores
_WARM_UP = 20  # steps
_BATCH = 64  # documents whose vectors are computed together
Span = tuple[int, int]  # first chunk, and the one after the last


@dataclass(frozen=True)
class Batch:
    """The batch of one step: documents or parts of documents, and the loss of their vectors."""

    spans: Sequence[Span]
    loss: Callable[[Tensor], Tensor]  # of their vectors (B, D), whitened, unit rows


def _document(corpus: FrozenCorpus, place: int) -> Span:
    return int(corpus.starts[place]), int(corpus.starts[place + 1])


def pairs_batch(corpus: FrozenCorpus, draw: np.random.Generator) -> Batch:
    """Queries with one target each, and two near documents of each query as negatives; also in-batch negatives.

    Cross-entropy of cosines at temperature 0.07 (InfoNCE, van den Oord et al. 2018); documents that are related to a
    query are not used as its negatives.
    """
    queries = draw.choice(list(corpus.pairs), min(_QUERIES, len(corpus.pairs)), replace=False).tolist()
    targets = [int(draw.choice(list(corpus.pairs[query]))) for query in queries]
    for query in queries:
        near = corpus.hard[query]
        targets += draw.choice(near, min(2, len(near)), replace=False).tolist()
    related = [
        [
            row != column and (target == query or target in corpus.related[query])
            for column, target in enumerate(targets)
        ]
        for row, query in enumerate(queries)
    ]

    def loss(vectors: Tensor) -> Tensor:
        logits = vectors[: len(queries)] @ vectors[len(queries) :].T / _TEMPERATURE
        return cross_entropy(logits.masked_fill(torch.tensor(related), float("-inf")), torch.arange(len(queries)))

    return Batch([_document(corpus, place) for place in (*queries, *targets)], loss)


def sections_batch(corpus: FrozenCorpus, draw: np.random.Generator) -> Batch:
    """A third of a document with the longer part of its rest as match; rests of other documents are negatives."""
    parts: list[Span] = []
    rests: list[Span] = []
    for place in draw.permutation(corpus.trainable).tolist():
        first, end = _document(corpus, place)
        if end - first < 3:
            continue
        length = (end - first) // 3
        start = int(draw.integers(first, end - length + 1))
        parts.append((start, start + length))
        rests.append((first, start) if start - first >= end - start - length else (start + length, end))
        if len(parts) == _QUERIES:
            break
    if not parts:
        raise DatasetError(f"no document of {corpus.name} has three chunks to draw sections from")

    def loss(vectors: Tensor) -> Tensor:
        half = len(vectors) // 2
        return cross_entropy(vectors[:half] @ vectors[half:].T / _TEMPERATURE, torch.arange(half))

    return Batch([*parts, *rests], loss)


def ranking_batch(corpus: FrozenCorpus, draw: np.random.Generator) -> Batch:
    """Queries with their eight best targets by the joint score and five lower ones; the joint scores are learned.

    Cross-entropy between the softmax of cosines at temperature 0.07 and that of joint scores at 0.03.
    """
    spans, lists = list[Span](), list[tuple[int, NDArray[np.int64], Tensor]]()
    for query in draw.choice(list(corpus.ranked), min(_RANKED, len(corpus.ranked)), replace=False).tolist():
        places, scores = corpus.ranked[query]
        lower = 8 + draw.permutation(max(0, len(places) - 8))[:5]
        chosen = np.concatenate([np.arange(min(8, len(places))), lower])
        lists.append((len(spans), chosen, torch.from_numpy(scores[chosen] / _TEACHER).softmax(0)))
        spans += [_document(corpus, place) for place in (query, *places[chosen].tolist())]

    def loss(vectors: Tensor) -> Tensor:
        losses = []
        for first, chosen, taught in lists:
            logits = vectors[first + 1 : first + 1 + len(chosen)] @ vectors[first] / _TEMPERATURE
            losses.append(-(taught * logits.log_softmax(0)).sum())
        return torch.stack(losses).mean()

    return Batch(spans, loss)


OBJECTIVES: Mapping[str, Callable[[FrozenCorpus, np.random.Generator], Batch]] = {
    "pairs": pairs_batch,
    "sections": sections_batch,
    "ranking": ranking_batch,
}


@dataclass(frozen=True)
class Trained:
    """A layer, and the outcome of its training."""

    layer: DocumentLayer
    n_documents: int  # read, with repetitions
    first_loss: float  # mean of the first twelfth of the steps, at least one
    last_loss: float  # mean of the last twelfth of the steps, at least one


def train(
    layer_name: str, objective: str, corpora: Sequence[FrozenCorpus], *, steps: int, rate: float, seed: int
) -> Trained:
    """Train a layer of `LAYERS` by an objective of `OBJECTIVES` with AdamW; steps use the corpora in turn.

    The learning rate has a warm-up of 20 steps and a linear decay over all steps.
    """
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    layer = LAYERS[layer_name](corpora[0].chunks.shape[1])
    optimizer = torch.optim.AdamW(layer.parameters(), lr=rate, weight_decay=0.01)
    losses, n_documents = [], 0
    for step, corpus in enumerate(islice(cycle(corpora), steps)):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / _WARM_UP) * (1 - step / steps)
        batch = OBJECTIVES[objective](corpus, draw)
        mean, matrix = torch.from_numpy(corpus.whitening.mean), torch.from_numpy(corpus.whitening.matrix)
        loss = batch.loss(normalize((_vectors(layer, corpus, batch.spans) - mean) @ matrix, dim=-1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        n_documents += len(batch.spans)
    part = max(1, steps // 12)
    return Trained(layer.eval(), n_documents, float(np.mean(losses[:part])), float(np.mean(losses[-part:])))


def _vectors(layer: DocumentLayer, corpus: FrozenCorpus, spans: Sequence[Span]) -> Tensor:
    """(B, D) vectors of parts of documents."""
    means = np.stack([corpus.chunks[first:end].astype(np.float32).mean(axis=0) for first, end in spans])
    added: Tensor = layer(*_padded(corpus, spans))
    return torch.from_numpy(means) + added


def _padded(corpus: FrozenCorpus, spans: Sequence[Span]) -> tuple[Tensor, Tensor]:
    """Chunks (B, n, D) of parts of documents, and a mask (B, n) of real chunks."""
    chosen = [
        np.linspace(first, end - 1, min(MAX_CHUNKS, end - first)).round().astype(np.int64) for first, end in spans
    ]
    longest = max(map(len, chosen))
    chunks = torch.zeros(len(spans), longest, corpus.chunks.shape[1])
    mask = torch.zeros(len(spans), longest, dtype=torch.bool)
    for row, places in enumerate(chosen):
        chunks[row, : len(places)] = torch.from_numpy(corpus.chunks[places].astype(np.float32))
        mask[row, : len(places)] = True
    return chunks, mask


@torch.inference_mode()
def document_vectors(layer: DocumentLayer, corpus: FrozenCorpus) -> Vectors:
    """(N, D) vectors of all documents of a corpus."""
    lengths = np.diff(corpus.starts)
    order = np.argsort(lengths, kind="stable")
    vectors = np.zeros((len(lengths), corpus.chunks.shape[1]), np.float32)
    for first in range(0, len(order), _BATCH):
        places = order[first : first + _BATCH]
        spans = [_document(corpus, place) for place in places.tolist()]
        vectors[places] = _vectors(layer, corpus, spans).numpy()
    return vectors
