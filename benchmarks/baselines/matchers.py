"""Early neural baselines: DSSM over letter trigrams, and ARC-I over word vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool1d

from benchmarks.baselines.pair_model import CosineHead, PairTraining, Prepared, SiameseModel, TrainedScorer, settings_of
from benchmarks.baselines.text_inputs import (
    DocumentWords,
    TrigramCounts,
    WordConfig,
    count_trigrams,
    count_words,
    frequent_trigrams,
    make_word_table,
    pad_words,
    read_words,
)
from engine.text.document import Document


@dataclass(frozen=True, slots=True)
class DssmConfig:
    """Sizes; by default those of the paper."""

    widths: tuple[int, ...] = (300, 300, 128)  # of the dense layers; the last is D
    max_trigrams: int = 30_000
    min_count: int = 5  # a rarer trigram is not read


class Dssm(SiameseModel[TrigramCounts]):
    """Huang et al. (2013, CIKM, "Learning Deep Structured Semantic Models for Web Search using Clickthrough Data").

        l_1 = tanh(W_1 x + b_1),  l_i = tanh(W_i l_{i-1} + b_i),  R(q, d) = cos(y_q, y_d)

    over letter trigrams x. Parameters are initialized as in the paper, uniform within sqrt(6 / (fan in + fan out)).
    The paper applies a softmax to R over one clicked and four other documents; here a pair has a label, and the loss
    is the binary cross-entropy of its scaled cosine, as in the comparison on long documents (Jha et al. 2022,
    section 4.1.3). One tower encodes both documents.
    """

    def __init__(self, config: DssmConfig, n_trigrams: int) -> None:
        """Initialize random parameters for a number of trigrams."""
        super().__init__()
        # The first dense layer over sparse inputs: a weighted sum of its columns.
        self.columns = nn.EmbeddingBag(n_trigrams, config.widths[0], mode="sum")
        nn.init.xavier_uniform_(self.columns.weight)
        self.bias = nn.Parameter(torch.zeros(config.widths[0]))
        self.layers = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(config.widths))
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.head = CosineHead()

    def encode(self, documents: Sequence[TrigramCounts]) -> Tensor:
        """See `SiameseModel.encode`: (N, D) in (-1, 1)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        weights = torch.from_numpy(np.concatenate([document.weights for document in documents])).to(self.device)
        starts = torch.tensor(np.cumsum([0, *(len(document) for document in documents[:-1])]), device=self.device)
        rows = torch.tanh(self.columns(ids, starts, per_sample_weights=weights) + self.bias)
        for layer in self.layers:
            rows = torch.tanh(layer(rows))
        return rows


def dssm(
    config: DssmConfig = DssmConfig(),
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[TrigramCounts]:
    """DSSM as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[TrigramCounts]:
        words = count_words(documents.values())
        ids = frequent_trigrams(words, min_count=config.min_count, most=config.max_trigrams)
        return Prepared(Dssm(config, len(ids)), lambda document: count_trigrams(document, ids))

    return TrainedScorer("dssm", settings_of(config), training, prepare, device=device)


_WINDOW = 3  # words of a convolution
_POOLED = 2  # neighbours, of which the larger is kept
WORDS = WordConfig(width=50, tuned=False)


@dataclass(frozen=True, slots=True)
class ArcIConfig:
    """Sizes. The paper tries 200 to 500 feature maps, and has fixed word vectors of width 50."""

    words: WordConfig = WORDS
    max_words: int = 2048  # read from a document
    layers: int = 3  # of convolution and pooling; the comparison in CoLDE's paper has three, the paper of ARC-I two
    features: int = 200


class ArcI(SiameseModel[DocumentWords]):
    """Hu et al. (2014, NeurIPS, arXiv:1503.03244), section 2, as Jha et al. (2022, section 4.1.3) compare it.

        z_i = relu(W [x_{i-1}; x_i; x_{i+1}] + b),  x'_i = max(z_{2i}, z_{2i+1})

    for each layer. After each layer, positions beyond the text are zero: this is the paper's gate, which sets a unit
    to zero where its whole window is zero. The paper ends with a fixed number of windows, concatenated for an MLP over
    both sentences. Documents differ in length, and the comparison ends with a cosine, so here the vector of a document
    is the largest value of each feature map.
    """

    def __init__(self, config: ArcIConfig, embedding: nn.Embedding) -> None:
        """Initialize random parameters over given word vectors."""
        super().__init__()
        self.embedding = embedding
        widths = [embedding.embedding_dim, *[config.features] * config.layers]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(before, after, _WINDOW, padding=_WINDOW // 2) for before, after in pairwise(widths)
        )
        self.head = CosineHead(middle=0.5)

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, F), at least 0."""
        ids, mask = pad_words(documents, self.device)
        rows = self.embedding(ids).mT  # (N, E, L); padding is zero in the table
        real = mask.unsqueeze(1).float()
        for convolution in self.convolutions:
            # No value is below zero after a relu, so a zero never exceeds the value of a real neighbour.
            rows = max_pool1d(torch.relu(convolution(rows)) * real, _POOLED, ceil_mode=True)
            real = max_pool1d(real, _POOLED, ceil_mode=True)
        vectors: Tensor = rows.amax(-1)
        return vectors


def arc_i(
    config: ArcIConfig = ArcIConfig(),
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[DocumentWords]:
    """ARC-I as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed)
        model = ArcI(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("arc-i", settings_of(config), training, prepare, device=device)
