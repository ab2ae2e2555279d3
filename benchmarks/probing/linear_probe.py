"""What a linear classifier learns from frozen vectors: all training labels, or a few of each class.

The classifier is multinomial logistic regression by scikit-learn,

    min_W,b  1/2 ||W||^2 + C sum_i -log softmax(W x_i + b)[y_i]

where DocSplit (2023, section 4 and appendix A) trains its last layer by SGD with
learning rate 3e-4 and batches of 8: the same model, fitted to the optimum, so that
no learning rate favours one encoder. Its C is chosen on valid.

Letters in shapes: N documents, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DatasetError
from engine.errors import MissingExtra

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

INVERSE_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # C; vectors of length 1 ask for large ones
FEW_SHOT_C = 1.0  # scikit-learn's own: so few labels leave none to choose it by
MAX_ITERATIONS = 5000

AnyVectors: TypeAlias = "NDArray[np.float32] | csr_matrix"  # (N, D)


@dataclass(frozen=True)
class Examples:
    """Documents with their classes."""

    vectors: AnyVectors  # (N, D), unit rows
    labels: Sequence[str]  # N


@dataclass(frozen=True)
class Draws:
    """What was reached with a few labels, draw by draw."""

    accuracy: list[float]
    macro_f1: list[float]


def fit_probe(train: Examples, valid: Examples) -> tuple[LogisticRegression, float]:
    """The classifier learned from `train` whose C has the best accuracy on `valid`, the smallest of equals; and that C.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    fitted = {c: _fit(train, c) for c in INVERSE_PENALTIES}
    right = {c: np.mean(probe.predict(valid.vectors) == np.array(valid.labels)) for c, probe in fitted.items()}
    best = max(INVERSE_PENALTIES, key=lambda c: right[c])
    return fitted[best], best


def few_shot(train: Examples, test: Examples, n_per_class: int, n_draws: int, seed: int) -> Draws:
    """Learn from `n_per_class` documents of each class, `n_draws` times anew, and test on all of `test`.

    Raises:
        DatasetError: a class has fewer training documents than that.
        MissingExtra: scikit-learn is not installed.
    """
    draws = Draws([], [])
    for rows in few_shot_rows(train.labels, n_per_class, n_draws, seed):
        few = Examples(train.vectors[rows], [train.labels[row] for row in rows])
        metrics = judge(test.labels, _fit(few, FEW_SHOT_C).predict(test.vectors))
        draws.accuracy.append(metrics["accuracy"])
        draws.macro_f1.append(metrics["macro_f1"])
    return draws


def few_shot_rows(labels: Sequence[str], n_per_class: int, n_draws: int, seed: int) -> list[NDArray[np.int64]]:
    """For each draw the rows of `n_per_class` documents of each class, none twice; draw i is the same for all n_draws.

    Raises:
        DatasetError: a class has fewer documents than that.
    """
    of_label = {label: np.flatnonzero(np.array(labels) == label) for label in sorted(set(labels))}
    smallest = min(of_label, key=lambda label: len(of_label[label]))
    if len(of_label[smallest]) < n_per_class:
        raise DatasetError(
            f"{n_per_class} documents of each class were asked for, {smallest!r} has {len(of_label[smallest])} to "
            "learn from; ask for fewer: --shots"
        )
    seeds = np.random.SeedSequence(seed).spawn(n_draws)
    return [
        np.concatenate([draw.choice(rows, n_per_class, replace=False) for rows in of_label.values()])
        for draw in map(np.random.default_rng, seeds)
    ]


def judge(labels: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Accuracy, and the mean over classes of F1 (a class that is neither there nor predicted is left out); in [0, 1].

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.metrics import accuracy_score, f1_score
    except ModuleNotFoundError as error:
        raise _missing() from error
    macro_f1 = f1_score(labels, predicted, average="macro", zero_division=0)
    return {"accuracy": float(accuracy_score(labels, predicted)), "macro_f1": float(macro_f1)}


def _fit(examples: Examples, c: float) -> LogisticRegression:
    try:
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError as error:
        raise _missing() from error
    return LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(examples.vectors, list(examples.labels))


def _missing() -> MissingExtra:
    return MissingExtra("a probe", "scikit-learn", "benchmarks")
