"""Scorers that distinguish matching pairs of documents from others, and the quality of their scores as classifiers.

Thresholds are chosen on valid, metrics are scikit-learn's, on test. Letters in shapes: N pairs. A pair is classified as
a match if its score is above the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.datasets import DatasetError
from benchmarks.packages import optional
from benchmarks.systems import Settings
from engine.text.document import Document

LABELS_ALONE = "labels_alone"  # the setting that is False if pairs without a label count as mismatches


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, and whether they match."""

    first: str  # doc_id
    second: str
    is_match: bool


def documents_of(pairs: Iterable[Pair]) -> set[str]:
    """The documents that pairs name."""
    return {doc_id for pair in pairs for doc_id in (pair.first, pair.second)}


@dataclass(frozen=True, slots=True)
class Budget:
    """The training budget of a scorer, equal for all scorers and on all machines."""

    steps: int = 1000  # most updates of the parameters
    pairs_per_step: int = 32

    def __str__(self) -> str:
        """The budget in words."""
        return f"{self.steps:,} steps of {self.pairs_per_step} pairs"


@dataclass(frozen=True, slots=True)
class Fit:
    """Documents and pairs that a scorer learns from, and its budget."""

    documents: Mapping[str, Document]  # documents of all splits, by doc_id
    train: Sequence[Pair]
    valid: Sequence[Pair]  # only for choosing when to stop
    budget: Budget
    seed: int

    @property
    def texts(self) -> dict[str, Document]:
        """The documents of train: words and topics are learned from these alone."""
        named = documents_of(self.train)
        return {doc_id: document for doc_id, document in self.documents.items() if doc_id in named}


@dataclass(frozen=True, slots=True)
class Course:
    """The outcome of learning from pairs."""

    n_steps: int  # updates made on pairs
    best_step: int  # after which the parameters were kept; 0 if training did not help
    valid_accuracy: float | None  # of the kept parameters on the pairs that chose them; None without such pairs
    pretraining_steps: int = 0  # earlier updates on texts alone
    n_tokens: int = 0  # read in all updates, repeated ones counted again; 0 if unknown


@dataclass(frozen=True)
class Learned:
    """What a scorer has after it learned."""

    score: Callable[[Sequence[Pair]], NDArray[np.float64]]  # (N,) of pairs of documents of `Fit`; reads no label
    encoder: str = ""  # the pretrained parameters, as name@checksum
    settings: Settings = field(default_factory=dict)  # those that are known only now
    course: Course | None = None
    save: Callable[[Path], None] | None = None  # writes the encoder to a folder; None if there is none


@dataclass(frozen=True)
class PairScorer:
    """Scores pairs of documents by what a function learns; a score is higher for a match."""

    name: str
    settings: Settings
    learn: Callable[[Fit], Learned]  # from the texts of the documents, and from the pairs of train if it is trained
    is_trained: bool  # whether it learns from pairs, within a budget of steps


Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgment:
    """Quality at one threshold; values in [0, 1], with precision, recall and F1 of the matches."""

    threshold: float
    accuracy: float
    precision: float  # 0 if no pair is classified as a match
    recall: float
    f1: float
    auc: float  # of the scores, independent of the threshold


def judge(scores: ArrayLike, labels: ArrayLike, threshold: float) -> Judgment:
    """Measure all pairs together, not batch by batch.

    Scores (N,) are higher where documents match; labels have both values.
    """
    metrics = optional("sklearn.metrics", "judging pairs", "scikit-learn")
    given, truth = _checked(scores, labels)
    called = given > threshold
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, called, average="binary", zero_division=0)
    return Judgment(
        threshold=float(threshold),
        accuracy=float(metrics.accuracy_score(truth, called)),
        precision=float(precision),
        recall=float(recall),
        f1=float(f1),
        auc=float(metrics.roc_auc_score(truth, given)),
    )


def is_correct(scores: ArrayLike, labels: ArrayLike, threshold: float) -> Bools:
    """(N,) True where a pair is classified correctly; systems are compared by these values, pair by pair."""
    given, truth = _checked(scores, labels)
    correct: Bools = (given > threshold) == truth
    return correct


def accuracy_threshold(scores: ArrayLike, labels: ArrayLike) -> float:
    """The threshold of highest accuracy.

    All thresholds between two neighbouring scores are equally good, so the middle of the gap is used; among equally
    good gaps the widest, then the lowest. A threshold outside of all scores is used only if it is better; it is right
    at the outermost score.
    """
    given, truth = _checked(scores, labels)
    sweep = _Sweep(given, truth)
    return sweep.best(sweep.n_true_matches + sweep.n_true_others)


def f1_threshold(scores: ArrayLike, labels: ArrayLike) -> float:
    """The threshold of highest F1 of the matches; ties as in `accuracy_threshold`."""
    given, truth = _checked(scores, labels)
    sweep = _Sweep(given, truth)
    n_called = sweep.n_true_matches + (np.count_nonzero(~truth) - sweep.n_true_others)
    return sweep.best(2 * sweep.n_true_matches / (n_called + np.count_nonzero(truth)))


class _Sweep:
    """All thresholds with different classifications, rising, each with its numbers of correct pairs."""

    def __init__(self, scores: Floats, labels: Bools) -> None:
        values = np.unique(scores)
        middles = values[:-1] + (values[1:] - values[:-1]) / 2
        # Between neighbouring floats there is no middle; a threshold at the upper one would leave it out.
        middles = np.where(middles < values[1:], middles, values[:-1])
        self._thresholds = np.concatenate([[np.nextafter(values[0], -np.inf)], middles, [values[-1]]])
        self._widths = np.concatenate([[0.0], values[1:] - values[:-1], [0.0]])
        matches, others = np.sort(scores[labels]), np.sort(scores[~labels])
        self.n_true_matches = len(matches) - np.searchsorted(matches, self._thresholds, side="right")
        self.n_true_others = np.searchsorted(others, self._thresholds, side="right")

    def best(self, quality: NDArray[np.number]) -> float:
        best = np.flatnonzero(quality == quality.max())
        return float(self._thresholds[best[np.argmax(self._widths[best])]])


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Bools]:
    given, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.bool_)
    if given.ndim != 1 or given.shape != truth.shape:
        raise ValueError(f"scores and labels must be of one shape (N,), not {given.shape} and {truth.shape}")
    if not np.all(np.isfinite(given)):
        raise ValueError(f"{np.count_nonzero(~np.isfinite(given))} of {given.size} scores are no finite numbers")
    if not 0 < np.count_nonzero(truth) < truth.size:
        raise ValueError(f"{np.count_nonzero(truth)} of {truth.size} labels are matches; both kinds are needed")
    return given, truth


def finite_scores(name: str, learned: Learned, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """(N,) scores rounded to nine digits, so that the scores in a record are those that were judged."""
    scores = learned.score(pairs)
    if not np.all(np.isfinite(scores)):
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DatasetError(
            f"{name} gives {pairs[at].first} and {pairs[at].second} the score {scores[at]}, no finite number; "
            "leave this scorer out, or spend less on its training"
        )
    return np.array([float(f"{score:.9g}") for score in scores])
