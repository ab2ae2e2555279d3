"""The interface of what tells matching pairs of documents from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Settings
from engine.document import Document

# Settings that a table looks for.
LABELS_ALONE = "labels_alone"  # False where pairs without a label count as mismatches
SMALL = "is_small"  # True where layers are narrow and documents short, for a first look


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, and whether they match."""

    first: str  # doc_id
    second: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class Budget:
    """What a scorer may spend on learning, the same for all, and on every machine."""

    steps: int = 1000  # updates of the weights, at most
    pairs_per_step: int = 32


@dataclass(frozen=True, slots=True)
class Fit:
    """Documents and pairs that a scorer learns from, and within what."""

    documents: Mapping[str, Document]  # by doc_id, those of all splits
    train: Sequence[Pair]
    valid: Sequence[Pair]  # may choose when to stop, and nothing else
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True)
class Course:
    """What learning from pairs came to."""

    n_steps: int  # updates made on pairs
    best_step: int  # after which the weights were kept; 0 where training did not help
    valid_accuracy: float | None  # of the kept weights on the pairs that chose them; None where there were none
    pretraining_steps: int = 0  # updates on texts alone, before


class PairScorer(Protocol):
    """Gives pairs a score that is higher where documents match."""

    @property
    def name(self) -> str:
        """Short and lower case; names the record."""

    @property
    def encoder(self) -> str:
        """What is given of weights or tokenizer, as name@checksum once it is fitted; "" where nothing is."""

    @property
    def settings(self) -> Settings:
        """What else is needed to get the same scores again."""

    @property
    def is_trained(self) -> bool:
        """Whether it learns from pairs, within a budget of steps."""

    @property
    def course(self) -> Course | None:
        """What its `fit` came to; None where it learns nothing from pairs."""

    def fit(self, given: Fit) -> None:
        """Learn from the texts of the documents and from the pairs of train."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(N,) scores of pairs of the documents that `fit` was given; their `is_match` is not looked at."""
