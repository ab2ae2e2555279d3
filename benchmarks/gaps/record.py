"""Attempts at chunk vectors that find what words miss: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from indexer.training.origin import Origin

BUNDLED = "the encoder as it is"  # the row that others are compared with


@dataclass(frozen=True)
class GapRow:
    """One attempt; by corpus, each left out of what the attempt learned from."""

    attempt: str
    steps: dict[str, int]  # of training, chosen on valid queries of the other corpora; 0 where none is needed
    per_query: dict[str, list[float]]  # nDCG@10 of the score


@dataclass(frozen=True)
class GapsRecord:
    """The joint score of words and chunks by attempt, on corpora that were left out."""

    kind: ClassVar[str] = "word_gaps"

    corpora: dict[str, str]  # name@checksum
    encoder: str  # name@fingerprint
    split: str
    n_train: dict[str, int]  # queries to learn from
    settings: dict[str, str | int | float | bool]  # of learning
    rows: list[GapRow]
    is_quick: bool
    seconds: float
    origin: Origin

    @property
    def name(self) -> str:
        """Of the file, without suffix."""
        quick = "-quick" if self.is_quick else ""
        return f"word_gaps-{self.encoder.partition('@')[0]}-{self.split}{quick}"
