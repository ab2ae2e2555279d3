"""The torch modules of TDE besides its backbone: topic vectors of sentences, and the classifier of a pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from engine.encoders.tde.config import TdeConfig
from engine.encoders.tde.topics import EmbeddedTopicModel, Vocabulary

_FEWEST_WORDS = 3
_SENTENCES_AT_ONCE = 4096  # bounds the hidden layers of the topic model, which would grow with the document


class TopicVectors(nn.Module):
    """Topics of sentences as vectors: t_s = LayerNorm(alpha^T theta_s).

    A sentence with fewer than 3 words of the vocabulary has the theta of its document. The
    gain of the normalisation starts at 1/sqrt(W), W the width, so that t_s starts at
    unit length and weighs as much as the backbone's state beside it.
    """

    def __init__(self, model: EmbeddedTopicModel) -> None:
        super().__init__()
        self.model = model
        width = model.alpha.shape[1]
        self.norm = nn.LayerNorm(width)
        nn.init.constant_(self.norm.weight, width**-0.5)

    def forward(self, sentences: Sequence[str], document: str) -> Tensor:
        """Make t_s of sentences.

        Args:
            sentences: C texts, at least one.
            document: the whole text that the sentences are from.

        Returns:
            (C, W) float32.
        """
        of_document = self.model.shares(self.model.bags([document]))  # (1, K)
        rows = []
        for first in range(0, len(sentences), _SENTENCES_AT_ONCE):
            bags = self.model.bags(sentences[first : first + _SENTENCES_AT_ONCE])
            enough = (bags.lengths >= _FEWEST_WORDS).unsqueeze(-1)
            shares = torch.where(enough, self.model.shares(bags), of_document)
            rows.append(self.norm(shares @ self.model.alpha))
        return torch.cat(rows)


class PairHead(nn.Module):
    """Classifier of a pair of texts over m = [h1; h2; h1 - h2; h1 * h2].

    Linear(4D, 256), ReLU, dropout 0.1, Linear(256, 2), where the paper says "a classifier
    layer". It reads h scaled to length sqrt(D), whatever the length of the mean was, so that
    vectors from an index can be classified too.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = width**0.5
        self.layers = nn.Sequential(nn.Linear(4 * width, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 2))

    def forward(self, query: Tensor, target: Tensor) -> Tensor:
        """Logits (..., 2) of no match and match, from two arrays of unit vectors (..., D) whose shapes broadcast."""
        one, other = self.scale * query, self.scale * target
        difference, product = one - other, one * other
        both = [one.expand_as(difference), other.expand_as(difference), difference, product]
        logits: Tensor = self.layers(torch.cat(both, dim=-1))
        return logits


class TdeLayers(nn.Module):
    """All parameters of a TDE except those of its backbone, initialised at random."""

    def __init__(self, width: int, config: TdeConfig, vocabulary: Vocabulary | None) -> None:
        """Make the layers.

        Args:
            width: H, of the backbone.
            config: sizes of the layers.
            vocabulary: of the topic model; None where `config.n_topics` is 0.
        """
        super().__init__()
        self.topics: TopicVectors | None = None
        if vocabulary is not None:
            width += config.topic_width
            model = EmbeddedTopicModel(
                vocabulary,
                config.n_topics,
                embedding_width=config.topic_width,
                hidden_width=config.topic_hidden_width,
            )
            self.topics = TopicVectors(model)
        self.head = PairHead(width)


class TdeModule(nn.Module):
    """All parameters of a TDE."""

    def __init__(self, backbone: nn.Module, layers: TdeLayers) -> None:
        super().__init__()
        self.backbone = backbone
        self.topics = layers.topics
        self.head = layers.head

    def own_weights(self) -> dict[str, Tensor]:
        """All parameters except those of the backbone, by their names in `TdeLayers`."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("backbone.")}
