"""Trains a network on candidates of the joint score, and ranks candidates by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from benchmarks.frozen.candidates import Candidates, RankedCorpus
from benchmarks.frozen.corpora import FrozenCorpus
from benchmarks.frozen.layers import MAX_CHUNKS
from benchmarks.frozen.rerankers import RERANKERS, Pairs, Reranker

RATES = {
    "weights": 3e-2,
    "mixture": 3e-3,
    "vectors": 1e-3,
    "kernels": 3e-2,
    "best chunks": 1e-3,
    "colde attention": 5e-4,
}
QUERIES = 4  # in a step
_TEMPERATURES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)  # of joint scores, in the softmax of the loss
_WARM_UP = 20


def pairs_of(corpus: FrozenCorpus, one: Candidates) -> Pairs:
    """The input of networks for a query and its candidates: at most 32 chunks of each document, evenly spaced."""
    chosen = [_chunks(corpus, place) for place in (one.query, *one.places.tolist())]
    longest = max(map(len, chosen[1:]))
    targets = torch.zeros(len(one.places), longest, corpus.chunks.shape[1])
    mask = torch.zeros(len(one.places), longest, dtype=torch.bool)
    for row, chunks in enumerate(chosen[1:]):
        targets[row, : len(chunks)], mask[row, : len(chunks)] = chunks, True
    means = torch.from_numpy(corpus.whitening(corpus.means[[one.query, *one.places.tolist()]]))
    return Pairs(chosen[0], targets, mask, means, torch.from_numpy(one.scores), torch.from_numpy(one.components))


def _chunks(corpus: FrozenCorpus, place: int) -> torch.Tensor:
    first, end = int(corpus.starts[place]), int(corpus.starts[place + 1])
    rows = np.linspace(first, end - 1, min(MAX_CHUNKS, end - first)).round().astype(np.int64)
    return torch.from_numpy(corpus.chunks[rows].astype(np.float32))


@dataclass(frozen=True)
class Trained:
    """A network, and the outcome of its training."""

    network: Reranker
    temperature: float
    first_loss: float
    last_loss: float


def temperature_of(corpora: Sequence[RankedCorpus]) -> float:
    """tau: the value of `_TEMPERATURES` with the least loss of the joint score alone on the training queries.

    With a smaller tau, a network first learns to reduce the weight of the joint score.
    """

    def loss(temperature: float) -> float:
        logits = [torch.from_numpy(one.scores / temperature) for corpus in corpora for one in corpus.train]
        gains = [torch.from_numpy(one.gains / one.gains.sum()) for corpus in corpora for one in corpus.train]
        return float(np.mean([cross_entropy(*pair).item() for pair in zip(logits, gains, strict=True)]))

    return min(_TEMPERATURES, key=loss)


def train(name: str, corpora: Sequence[RankedCorpus], *, steps: int, seed: int) -> Trained:
    """Train a network by AdamW on the candidates of queries; steps alternate between corpora.

    The loss is the cross-entropy between gains, scaled to a sum of 1, and the softmax of joint score / tau + network
    (ListNet, Cao et al. 2007).
    """
    temperature = temperature_of(corpora)
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    network = RERANKERS[name](corpora[0].vectors.chunks.shape[1])
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATES[name], weight_decay=0.01)
    losses = []
    for step, corpus in enumerate(islice(cycle(corpora), steps)):
        for group in optimizer.param_groups:
            group["lr"] = RATES[name] * min(1, (step + 1) / _WARM_UP) * (1 - step / steps)
        batch = []
        for number in draw.choice(len(corpus.train), min(QUERIES, len(corpus.train)), replace=False).tolist():
            one = corpus.train[number]
            pairs = pairs_of(corpus.vectors, one)
            gains = torch.from_numpy(one.gains)
            batch.append(cross_entropy(pairs.scores / temperature + network(pairs), gains / gains.sum()))
        loss = torch.stack(batch).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    part = max(1, steps // 6)
    return Trained(network.eval(), temperature, float(np.mean(losses[:part])), float(np.mean(losses[-part:])))


@torch.inference_mode()
def scored(trained: Trained, corpus: RankedCorpus) -> list[NDArray[np.floating]]:
    """Scores of the candidates of each measured query."""
    found = []
    for one in corpus.measured:
        added = trained.network(pairs_of(corpus.vectors, one)).numpy() if len(one.places) else 0.0
        found.append(one.scores + trained.temperature * added)
    return found
