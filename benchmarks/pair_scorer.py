"""The interface of scorers that distinguish matching pairs of documents from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems import Settings
from engine.text.document import Document

# Settings that tables read.
LABELS_ALONE = "labels_alone"  # False if pairs without a label count as mismatches
SMALL = "is_small"  # True for narrow layers and short documents, for a first look


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, and whether they match."""

    first: str  # doc_id
    second: str
    is_match: bool


def documents_of(pairs: Sequence[Pair]) -> set[str]:
    """The documents that pairs name."""
    return {doc_id for pair in pairs for doc_id in (pair.first, pair.second)}


@dataclass(frozen=True, slots=True)
class Budget:
    """The training budget of a scorer, equal for all scorers and on all machines."""

    steps: int = 1000  # most updates of the parameters
    pairs_per_step: int = 32


@dataclass(frozen=True, slots=True)
class Fit:
    """Documents and pairs that a scorer learns from, and its budget."""

    documents: Mapping[str, Document]  # documents of all splits, by doc_id
    train: Sequence[Pair]
    valid: Sequence[Pair]  # only for choosing when to stop
    budget: Budget
    seed: int


@dataclass(frozen=True, slots=True)
class Course:
    """The outcome of learning from pairs."""

    n_steps: int  # updates made on pairs
    best_step: int  # after which the parameters were kept; 0 if training did not help
    valid_accuracy: float | None  # of the kept parameters on the pairs that chose them; None without such pairs
    pretraining_steps: int = 0  # earlier updates on texts alone
    n_tokens: int = 0  # read in all updates, repeated ones counted again; 0 if unknown


class PairScorer(Protocol):
    """Scores pairs of documents; a score is higher for a match."""

    @property
    def name(self) -> str:
        """Short and lower case; names the record."""

    @property
    def encoder(self) -> str:
        """The pretrained parameters or tokenizer, as name@checksum after `fit`; "" if there are none."""

    @property
    def settings(self) -> Settings:
        """The other settings that determine the scores."""

    @property
    def is_trained(self) -> bool:
        """Whether it learns from pairs, within a budget of steps."""

    @property
    def course(self) -> Course | None:
        """The outcome of `fit`; None if the scorer does not learn from pairs."""

    def fit(self, given: Fit) -> None:
        """Learn from the texts of the documents and from the pairs of train."""

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(N,) scores of pairs of documents passed to `fit`; `is_match` of the pairs is not read."""
