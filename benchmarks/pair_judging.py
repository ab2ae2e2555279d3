"""The quality of scores as classifiers of pairs: thresholds chosen on valid, scikit-learn's metrics on test.

Letters in shapes: N pairs. A pair is classified as a match if its score is above the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.datasets import DatasetError
from benchmarks.packages import BENCHMARKS, optional
from benchmarks.pair_scorer import Pair, PairScorer

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

    Args:
        scores: (N,), higher where documents match.
        labels: (N,) bool, with both values.
    """
    metrics = optional("sklearn.metrics", "judging pairs", "scikit-learn", BENCHMARKS)
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


def finite_scores(scorer: PairScorer, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """(N,) scores rounded to nine digits, so that the scores in a record are those that were judged."""
    scores = scorer.score(pairs)
    if not np.all(np.isfinite(scores)):
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DatasetError(
            f"{scorer.name} gives {pairs[at].first} and {pairs[at].second} the score {scores[at]}, no finite number; "
            "leave this scorer out, or spend less on its training"
        )
    return np.array([float(f"{score:.9g}") for score in scores])
