"""The configuration of a TDE, and its torch modules around the backbone: topics of sentences, a classifier of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.encoders.encoder import Pooling, Variant
from engine.encoders.tde.topics import EmbeddedTopicModel, Vocabulary
from engine.errors import EncoderError


@dataclass(frozen=True, slots=True)
class TdeConfig:
    """Sizes and choices of one TDE.

    `paper` reads every sentence by itself and takes the state of its [CLS]. `fixed`
    reads sentences under 8 tokens, mostly headings, with the next one, and takes the
    mean of all states. No code was published, so there is no `released`.

    Raises:
        EncoderError: a value is out of its range.
    """

    variant: Variant = Variant.FIXED
    pooling: Pooling | None = None  # None: that of the variant
    sentence_tokens: int = 128  # most tokens read at once, special ones counted; a longer sentence is cut
    n_topics: int = 100  # K; 0 leaves the topics out, "TDE w/o ETM"
    topic_width: int = 300
    topic_hidden_width: int = 800
    min_df: int = 2  # see `Vocabulary.fit`
    max_df: float = 0.7
    max_words: int = 20_000

    def __post_init__(self) -> None:
        if self.variant is Variant.RELEASED:
            raise EncoderError("variant is 'released', but no code of TDE was published; take 'paper' or 'fixed'")
        if self.pooling is None:
            pooling = Pooling.CLS if self.variant is Variant.PAPER else Pooling.MEAN
            object.__setattr__(self, "pooling", pooling)
        if self.n_topics < 0 or self.n_topics == 1:
            raise EncoderError(f"n_topics is {self.n_topics}; give at least 2, or 0 for no topic model")
        for name in ("topic_width", "topic_hidden_width"):
            if getattr(self, name) < 1:
                raise EncoderError(f"{name} is {getattr(self, name)}; give at least 1")


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
        """Make t_s (C, W) of the sentences of a document, of which there is at least one."""
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
        """Make the layers for a backbone of a width; the vocabulary is that of the topic model, if there is one."""
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
