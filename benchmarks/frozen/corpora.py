"""Corpora with chunk vectors read from an index, training pairs, and queries to measure.

Letters in shapes: N documents, C chunks of all documents, D width of a vector, Q queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, Qrels, read_qrels
from benchmarks.metrics import evaluate
from engine.index import Index
from engine.training.corpus import TrainingCorpus

POWER = 0.25
_SHRINKAGE = 0.1
_BLOCK = 1024  # documents or queries at a time
_TAUGHT = 60  # targets of a query whose joint scores are training targets
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Whitening:
    """A linear map that equalises the variance of vectors over a corpus.

        y = unit(U diag(lambda^-p) U^T (x - mu))

    with U and lambda the eigenvectors and eigenvalues of the covariance; lambda is shrunk by a tenth to its mean.
    p = 1/2 is ZCA whitening (Bell & Sejnowski 1997); p = 1/4 keeps half of the differences of the logarithms.
    """

    mean: Vectors  # (D,)
    matrix: Vectors  # (D, D)

    @classmethod
    def of(cls, vectors: Vectors, power: float = POWER) -> Whitening:
        """Fit to the vectors of a corpus, (N, D)."""
        mean = vectors.mean(axis=0)
        variance, axes = np.linalg.eigh(np.cov((vectors - mean).T.astype(np.float64)))
        variance = (1 - _SHRINKAGE) * variance.clip(0) + _SHRINKAGE * variance.mean()
        return cls(mean, ((axes * variance**-power) @ axes.T).astype(np.float32))

    def __call__(self, vectors: Vectors) -> Vectors:
        """(N, D), unit rows."""
        return unit(np.asarray((vectors - self.mean) @ self.matrix, np.float32))


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), np.float32)


@dataclass(frozen=True)
class FrozenCorpus:
    """A corpus with fixed chunk vectors, which are not trained."""

    name: str
    ids: Sequence[str]  # (N,)
    chunks: NDArray[np.float16]  # (C, D), unit rows
    starts: NDArray[np.int64]  # (N + 1,) first chunk of each document, and C
    trainable: NDArray[np.int64]  # documents that are not queries of valid or test
    pairs: Mapping[int, Mapping[int, int]]  # training pairs: query to its targets
    related: Mapping[int, Mapping[int, int]]  # all judged targets of the training queries: never negatives
    ranked: Mapping[int, tuple[NDArray[np.int64], Vectors]]  # best targets and joint scores of some training queries
    qrels: Qrels  # of the measured queries

    @cached_property
    def means(self) -> Vectors:
        """(N, D) means of the chunks of each document."""
        blocks = []
        for first in range(0, len(self.ids), _BLOCK):
            starts = self.starts[first : first + _BLOCK + 1]
            rows = self.chunks[starts[0] : starts[-1]].astype(np.float32)
            blocks.append(np.add.reduceat(rows, starts[:-1] - starts[0], axis=0) / np.diff(starts)[:, None])
        return np.concatenate(blocks).astype(np.float32)

    @cached_property
    def whitening(self) -> Whitening:
        """The whitening fitted to the means."""
        return Whitening.of(self.means)

    @cached_property
    def hard(self) -> Mapping[int, NDArray[np.int64]]:
        """Unrelated trainable documents of each training query: at most 20, among the 60 nearest by whitened mean."""
        queries, white = np.array(list(self.pairs)), self.whitening(self.means)
        found = {}
        for first in range(0, len(queries), _BLOCK):
            block = queries[first : first + _BLOCK]
            nearest = np.argsort(-(white[block] @ white[self.trainable].T), axis=1, kind="stable")[:, :60]
            for query, places in zip(block.tolist(), self.trainable[nearest], strict=True):
                others = [place for place in places.tolist() if place != query and place not in self.related[query]]
                found[query] = np.array(others[:20])
        return found

    def ndcg(self, vectors: Vectors) -> list[float]:
        """nDCG@10 of each measured query, by the cosine of document vectors (N, D), unit rows."""
        place_of = {doc_id: place for place, doc_id in enumerate(self.ids)}
        runs = {}
        for query in self.qrels:
            own = place_of[query]
            similarity = vectors @ vectors[own]
            similarity[own] = -np.inf
            best = np.argsort(-similarity, kind="stable")[:10]
            runs[query] = [self.ids[place] for place in best.tolist()]
        return [round(value, 4) for value in evaluate(self.qrels, runs)["nDCG@10"].values()]


def frozen_corpus(
    dataset: Dataset, index: Index, training: TrainingCorpus, split: str, *, n_ranked: int, seed: int
) -> FrozenCorpus:
    """Read the vectors of an index, and rank targets of some training queries by the joint score.

    `split` has the measured queries; `n_ranked` training queries are chosen by `seed`.
    """
    snapshot = index.snapshot
    ids = list(snapshot.doc_ids())
    place_of = {doc_id: place for place, doc_id in enumerate(ids)}
    rows, counts = [], []
    for first in range(0, len(ids), _BLOCK):
        block = np.arange(first, min(first + _BLOCK, len(ids)))
        vectors, starts = snapshot.chunk_vectors(block)
        rows.append(vectors.astype(np.float16))
        counts.append(np.diff(np.append(starts, len(vectors))))

    def placed(judged: Mapping[str, int]) -> dict[int, int]:
        return {place_of[doc_id]: grade for doc_id, grade in judged.items() if doc_id in place_of}

    pairs = {place_of[query]: found for query, targets in training.pairs.items() if (found := placed(targets))}
    draw = np.random.default_rng(seed).permutation(list(pairs))
    ranked = {}
    for query in islice(draw.tolist(), n_ranked):
        hits = [hit for hit in index.search_id(ids[query], k=_TAUGHT).hits if hit.doc_id not in training.held_out]
        ranked[query] = (
            np.array([place_of[hit.doc_id] for hit in hits]),
            np.array([hit.score for hit in hits], np.float32),
        )
    return FrozenCorpus(
        name=dataset.name,
        ids=ids,
        chunks=np.concatenate(rows),
        starts=np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
        trainable=np.array([place for place, doc_id in enumerate(ids) if doc_id not in training.held_out]),
        pairs=pairs,
        related={query: placed(training.related[ids[query]]) for query in pairs},
        ranked=ranked,
        qrels={query: dict(judged) for query, judged in read_qrels(dataset, split).items()},
    )
