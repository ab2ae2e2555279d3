"""ARC-I: convolutions and pooling over word vectors, a cosine over what is left.

Letters in shapes: N documents, L words of the longest, F feature maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool1d

from benchmarks.baselines.embedding_table import WordConfig, make_word_table
from benchmarks.baselines.pair_model import CosineHead, SiameseModel
from benchmarks.baselines.pair_training import PairTraining
from benchmarks.baselines.trained_scorer import Prepared, TrainedScorer, settings_of
from benchmarks.baselines.word_inputs import DocumentWords, pad_words, read_words
from engine.document import Document

_WINDOW = 3  # words of a convolution
_POOLED = 2  # neighbours of which the larger is kept
WORDS = WordConfig(width=50, tuned=False)


@dataclass(frozen=True, slots=True)
class ArcIConfig:
    """Sizes. The paper tries 200 to 500 feature maps and has vectors of 50, not trained on."""

    words: WordConfig = WORDS
    max_words: int = 2048  # that are read of a document
    layers: int = 3  # of convolution and pooling; CoLDE's comparison has three, the paper two
    features: int = 200


class ArcI(SiameseModel[DocumentWords]):
    """Hu et al. (2014, NeurIPS, arXiv:1503.03244), section 2, as Jha et al. (2022, section 4.1.3) compare it.

        z_i = relu(W [x_{i-1}; x_i; x_{i+1}] + b),  x'_i = max(z_{2i}, z_{2i+1})

    for each layer. What lies behind the text is zero after each of them: the paper's gate, which
    sets a unit to zero where all of its window is. The paper ends with a fixed number of windows, which
    it joins for an MLP over both sentences; documents differ in length, and the comparison ends
    with a cosine, so here the largest value of each feature map over the document is its vector.
    """

    def __init__(self, config: ArcIConfig, embedding: nn.Embedding) -> None:
        """Draw random weights over given word vectors."""
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
            # Nothing is below zero after a relu, so a zero never wins against a real neighbour.
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

    def prepare(documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed, seconds=seconds)
        model = ArcI(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("arc-i", settings_of(config), training, prepare, device=device)
