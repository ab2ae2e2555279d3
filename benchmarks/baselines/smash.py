"""SMASH RNN: hierarchical attention at three depths, and dense layers over a pair of documents.

Letters in shapes: B pairs, N documents, H of a GRU in each direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.baselines.attentive_gru import AttentiveGru
from benchmarks.baselines.embedding_table import WordConfig, make_word_table
from benchmarks.baselines.pair_model import SiameseModel
from benchmarks.baselines.pair_training import PairTraining
from benchmarks.baselines.trained_scorer import Prepared, TrainedScorer, settings_of
from benchmarks.baselines.word_inputs import DocumentWords, read_words
from engine.document import Document

_DEPTHS = 3
WORDS = WordConfig(width=50, tuned=False)


@dataclass(frozen=True, slots=True)
class SmashConfig:
    """Sizes of the unofficial code; the length is the best one that Yang et al. (2020, arXiv:2004.12297) found."""

    words: WordConfig = WORDS
    max_words: int = 2048  # that are read of a document
    width: int = 128  # of each GRU, in each direction
    attention_width: int = 128  # of each context vector


class Smash(SiameseModel[DocumentWords]):
    """Jiang et al. (2019, WWW, "Semantic Text Matching for Long-Form Documents").

    A document is cut in paragraphs of sentences of words; in one paragraph of its sentences; and in one
    sentence of its words. Each time an `AttentiveGru` reads words, one sentences, and one
    paragraphs; the vector is [d_paragraphs; d_sentences; d_words]. A pair of them has

        logit = w . relu(W [s; t; |s - t|; s * t] + b) + c

    so that the score depends on which document comes first, and no index can hold it. The authors published
    no code. That the three depths share their networks, the last two features and all widths are those of
    the code of D. N. de Paula, which is not theirs.
    """

    def __init__(self, config: SmashConfig, embedding: nn.Embedding) -> None:
        """Draw random weights over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.words = AttentiveGru(embedding.embedding_dim, config.width, config.attention_width)
        self.sentences = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.paragraphs = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.head = _FeatureHead(_DEPTHS * 2 * config.width)

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, 6 H)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        words = self.embedding(ids)
        one = torch.ones(len(documents), dtype=torch.int64)
        sentences = self.words(words, torch.from_numpy(np.concatenate([document.sentences for document in documents])))
        paragraphs = self.sentences(
            sentences, torch.from_numpy(np.concatenate([document.paragraphs for document in documents]))
        )
        by_paragraphs = self.paragraphs(paragraphs, torch.tensor([len(document.paragraphs) for document in documents]))
        joined = self.sentences(sentences, torch.tensor([len(document.sentences) for document in documents]))
        by_sentences = self.paragraphs(joined, one)
        whole = self.words(words, torch.tensor([len(document) for document in documents]))
        by_words = self.paragraphs(self.sentences(whole, one), one)
        return torch.cat([by_paragraphs, by_sentences, by_words], -1)


class _FeatureHead(nn.Module):
    """Dense layers over two vectors, their distance and their product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(B, D) and (B, D) to (B,)."""
        features = torch.cat([first, second, (first - second).abs(), first * second], -1)
        logits: Tensor = self.layers(features).squeeze(-1)
        return logits


def smash(
    config: SmashConfig = SmashConfig(),
    training: PairTraining = PairTraining(pairs_at_once=16),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[DocumentWords]:
    """SMASH RNN as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed, seconds=seconds)
        model = Smash(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("smash", settings_of(config), training, prepare, device=device)
