"""DSSM, the deep structured semantic model: letter trigrams through dense layers to a cosine.

Letters in shapes: N documents, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.baselines.letter_trigrams import TrigramCounts, count_trigrams, frequent_trigrams
from benchmarks.baselines.pair_model import CosineHead, SiameseModel
from benchmarks.baselines.pair_training import PairTraining
from benchmarks.baselines.trained_scorer import Prepared, TrainedScorer, settings_of
from benchmarks.baselines.word_inputs import count_words
from engine.document import Document


@dataclass(frozen=True, slots=True)
class DssmConfig:
    """Sizes; by default those of the paper."""

    widths: tuple[int, ...] = (300, 300, 128)  # of the dense layers; the last is D
    max_trigrams: int = 30_000
    min_count: int = 5  # a rarer trigram is not read


class Dssm(SiameseModel[TrigramCounts]):
    """Huang et al. (2013, CIKM, "Learning Deep Structured Semantic Models for Web Search using Clickthrough Data").

        l_1 = tanh(W_1 x + b_1),  l_i = tanh(W_i l_{i-1} + b_i),  R(q, d) = cos(y_q, y_d)

    over letter trigrams x, drawn as the paper draws them, uniform within sqrt(6 / (fan in + fan out)).
    The paper puts R through a softmax over one clicked and four other documents; here a pair has a label,
    and its cosine, scaled, a binary cross-entropy, as in the comparisons of long documents (Jha et al.
    2022, section 4.1.3). One tower for both documents.
    """

    def __init__(self, config: DssmConfig, n_trigrams: int) -> None:
        """Draw random weights for a number of trigrams."""
        super().__init__()
        # The first dense layer over sparse inputs: a sum of its columns.
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

    def prepare(documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[TrigramCounts]:
        words = count_words(documents.values())
        ids = frequent_trigrams(words, min_count=config.min_count, most=config.max_trigrams)
        return Prepared(Dssm(config, len(ids)), lambda document: count_trigrams(document, ids))

    return TrainedScorer("dssm", settings_of(config), training, prepare, device=device)
