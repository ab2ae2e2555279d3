"""The configuration of a TDE: variant, sizes, vocabulary. Values alone; no parameters."""

from __future__ import annotations

from dataclasses import dataclass

from engine.encoders.backbone.backbone import Pooling
from engine.encoders.variant import Variant
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
