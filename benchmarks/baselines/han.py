"""HAN, the hierarchical attention network: words to sentences to a document, compared by cosine.

Letters in shapes: N documents, H of a GRU in each direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.baselines.attentive_gru import AttentiveGru
from benchmarks.baselines.embedding_table import WordConfig, make_word_table
from benchmarks.baselines.pair_model import CosineHead, SiameseModel
from benchmarks.baselines.pair_training import PairTraining
from benchmarks.baselines.trained_scorer import Prepared, TrainedScorer, settings_of
from benchmarks.baselines.word_inputs import DocumentWords, read_words
from engine.document import Document

WORDS = WordConfig(width=200)


@dataclass(frozen=True, slots=True)
class HanConfig:
    """Sizes of the paper; the length is the best one that Yang et al. (2020, arXiv:2004.12297, table 5) found."""

    words: WordConfig = WORDS
    max_words: int = 2048  # that are read of a document
    width: int = 50  # of either GRU, in each direction
    attention_width: int = 100  # of either context vector


class Han(SiameseModel[DocumentWords]):
    """Yang et al. (2016, NAACL, N16-1174): an `AttentiveGru` over the words of each sentence, one over the sentences.

    The paper classifies documents. Here the two vectors of a pair are compared by a
    cosine, as the papers on long documents do (Jha et al. 2022, section 4.1.3).
    """

    def __init__(self, config: HanConfig, embedding: nn.Embedding) -> None:
        """Draw random weights over given word vectors."""
        super().__init__()
        self.embedding = embedding
        self.words = AttentiveGru(embedding.embedding_dim, config.width, config.attention_width)
        self.sentences = AttentiveGru(2 * config.width, config.width, config.attention_width)
        self.head = CosineHead()

    def encode(self, documents: Sequence[DocumentWords]) -> Tensor:
        """See `SiameseModel.encode`: (N, 2 H)."""
        ids = torch.from_numpy(np.concatenate([document.ids for document in documents])).to(self.device)
        words = torch.from_numpy(np.concatenate([document.sentences for document in documents]))
        sentences = torch.tensor([len(document.sentences) for document in documents])
        vectors: Tensor = self.sentences(self.words(self.embedding(ids), words), sentences)
        return vectors


def han(
    config: HanConfig = HanConfig(),
    training: PairTraining = PairTraining(),  # noqa: B008
    *,
    device: str | None = None,
) -> TrainedScorer[DocumentWords]:
    """HAN as a `PairScorer`."""

    def prepare(documents: Mapping[str, Document], *, seed: int, seconds: float) -> Prepared[DocumentWords]:
        table = make_word_table(documents.values(), config.words, seed=seed, seconds=seconds)
        model = Han(config, table.embedding)
        return Prepared(model, lambda document: read_words(document, table.vocabulary, config.max_words))

    return TrainedScorer("han", settings_of(config), training, prepare, device=device)
