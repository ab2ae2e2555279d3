"""Vectors of the terms of whole documents, by a random projection; weights of terms come from other corpora.

Terms are the tokens of the encoder. With n_w the number of times that term w occurs in a document, the vector of its
terms is

    t = unit(sum_w (1 + ln n_w) e^(g_w) E_w)

The rows E_w are drawn from N(0, 1 / T). The cosine of two such vectors is that of the weighted counts, with an error
of about T^-1/2 (Johnson & Lindenstrauss 1984), and no table of known terms is learned: an unknown term has a row as
every other has. g_w begins as ln idf_w over other corpora, and can be trained.

Letters in shapes: N documents, B of them, V terms, T width of a projection, D width of a chunk vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

from benchmarks.frozen.corpora import FrozenCorpus, Vectors, Whitening, unit
from benchmarks.frozen.training import pairs_batch
from engine.encoders.backbone.tokenizer import Tokenizer

WIDTH = 768  # T
_AT_ONCE = 64  # documents whose texts or vectors are computed together
_LEAST_IDF = 1e-3  # of a term that every document has


@dataclass(frozen=True)
class TermCorpus:
    """A corpus with chunk vectors and the terms of its documents."""

    frozen: FrozenCorpus
    counts: csr_matrix  # (N, V)

    @property
    def means(self) -> Vectors:
        """(N, D) whitened means of the chunks, unit rows."""
        return self.frozen.whitening(self.frozen.means)


def term_counts(texts: Sequence[str], tokenizer: Tokenizer) -> csr_matrix:
    """(N, V) how often each term occurs in each text."""
    counted: list[Counter[int]] = []
    for first in range(0, len(texts), _AT_ONCE):
        counted += [Counter(ids) for ids, _ in tokenizer.tokenize(texts[first : first + _AT_ONCE])]
    starts = np.cumsum([0, *map(len, counted)])
    terms = np.fromiter((term for own in counted for term in own), np.int64, starts[-1])
    values = np.fromiter((n for own in counted for n in own.values()), np.float32, starts[-1])
    return csr_matrix((values, terms, starts), shape=(len(texts), tokenizer.vocabulary_size))


@dataclass(frozen=True)
class TermWeights:
    """The weights of terms, and that of the vector of terms beside the mean of the chunks."""

    table: Tensor  # (V, T), E
    logarithms: Tensor  # (V,), g
    log_share: Tensor  # (), ln beta

    @classmethod
    def of(cls, corpora: Sequence[TermCorpus], *, seed: int) -> TermWeights:
        """Weights by the inverse document frequency over all documents of some corpora; beta is 1.

        idf_w = ln((N + 1) / (n + 1)), with n the documents that have the term.
        """
        n_documents = sum(corpus.counts.shape[0] for corpus in corpora)
        having = np.sum([np.asarray((corpus.counts > 0).sum(axis=0))[0] for corpus in corpora], axis=0)
        idf = np.log((n_documents + 1) / (having + 1)).clip(_LEAST_IDF)
        rows = np.random.default_rng(seed).standard_normal((len(idf), WIDTH), np.float32) / np.float32(WIDTH**0.5)
        return cls(torch.from_numpy(rows), torch.from_numpy(np.log(idf).astype(np.float32)), torch.zeros(()))

    def vectors(self, counts: csr_matrix) -> Tensor:
        """(B, T) vectors of terms, unit rows."""
        terms = torch.from_numpy(counts.indices.astype(np.int64))
        weights = torch.from_numpy(1 + np.log(counts.data)) * self.logarithms[terms].exp()
        starts = torch.from_numpy(counts.indptr[:-1].astype(np.int64))
        summed = embedding_bag(terms, self.table, starts, mode="sum", per_sample_weights=weights)
        return normalize(summed, dim=-1)

    @torch.inference_mode()
    def all_vectors(self, corpus: TermCorpus) -> Vectors:
        """(N, T) vectors of the terms of all documents, unit rows."""
        starts = range(0, corpus.counts.shape[0], _AT_ONCE)
        return np.concatenate([self.vectors(corpus.counts[first : first + _AT_ONCE]).numpy() for first in starts])

    def document_vectors(self, corpus: TermCorpus) -> Vectors:
        """(N, D + T) unit([a; beta b]) of the whitened means a and the whitened vectors of terms b."""
        terms = self.all_vectors(corpus)
        share = float(self.log_share.detach().exp())
        return unit(np.concatenate([corpus.means, share * Whitening.of(terms)(terms)], axis=1))


def principal(vectors: Vectors, width: int) -> Vectors:
    """(N, `width`) unit rows: vectors on their principal axes, after their mean is subtracted."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(centred.T.astype(np.float64)))
    return unit(np.asarray(centred @ axes[:, -width:], np.float32))


@dataclass(frozen=True)
class TrainedWeights:
    """Weights of terms that were trained, and the outcome of the training."""

    weights: TermWeights
    n_documents: int  # read, with repetitions
    first_loss: float  # mean of the first twelfth of the steps, at least one
    last_loss: float  # mean of the last twelfth of the steps, at least one


def train_weights(corpora: Sequence[TermCorpus], *, steps: int, rate: float, seed: int) -> TrainedWeights:
    """Train g and beta on the pairs of some corpora by `pairs_batch`, with Adam; steps use the corpora in turn.

    Chunk vectors, E and the whitening of each corpus stay as they are before training.
    """
    begun = TermWeights.of(corpora, seed=seed)
    weights = TermWeights(begun.table, begun.logarithms.requires_grad_(), begun.log_share.requires_grad_())
    draw = np.random.default_rng(seed)
    optimizer = torch.optim.Adam([weights.logarithms, weights.log_share], lr=rate)
    prepared = [
        (corpus, torch.from_numpy(corpus.means), Whitening.of(weights.all_vectors(corpus))) for corpus in corpora
    ]
    losses, n_documents = list[float](), 0
    for corpus, means, whitening in islice(cycle(prepared), steps):
        batch = pairs_batch(corpus.frozen, draw)
        places = np.searchsorted(corpus.frozen.starts, [first for first, _ in batch.spans])
        terms = weights.vectors(corpus.counts[places]) - torch.from_numpy(whitening.mean)
        whitened = normalize(terms @ torch.from_numpy(whitening.matrix), dim=-1)
        joined = torch.cat([means[torch.from_numpy(places)], weights.log_share.exp() * whitened], dim=1)
        loss = batch.loss(normalize(joined, dim=-1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        n_documents += len(places)
    part = max(1, steps // 12)
    return TrainedWeights(weights, n_documents, float(np.mean(losses[:part])), float(np.mean(losses[-part:])))
