from __future__ import annotations

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.probing.probes import (
    FEW_SHOT_C,
    INVERSE_PENALTIES,
    Examples,
    few_shot,
    few_shot_rows,
    fit_probe,
    judge,
)

pytest.importorskip("sklearn")


def cloud(n: int, seed: int, noise: float = 0.6) -> Examples:
    """Unit rows of three classes."""
    draw = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    rows = np.eye(3, 5)[classes] + noise * draw.standard_normal((n, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return Examples(rows.astype(np.float32), [f"class{number}" for number in classes])


def loss_by_hand(examples: Examples, weights: np.ndarray, bias: np.ndarray, c: float) -> float:
    """The module's equation, one document at a time."""
    total = 0.5 * float((weights**2).sum())
    for row, label in zip(examples.vectors, examples.labels, strict=True):
        scores = weights @ row + bias
        total += c * float(np.log(np.exp(scores).sum()) - scores[int(label[-1])])
    return total


def test_the_probe_is_at_the_minimum_of_the_equation() -> None:
    train, valid = cloud(60, 0), cloud(30, 1)
    probe, c = fit_probe(train, valid)
    least = loss_by_hand(train, probe.coef_, probe.intercept_, c)
    for seed in range(20):
        step = 0.05 * np.random.default_rng(seed).standard_normal(probe.coef_.shape)
        assert loss_by_hand(train, probe.coef_ + step, probe.intercept_, c) > least


def test_c_is_the_smallest_of_those_that_are_best_on_valid() -> None:
    from sklearn.linear_model import LogisticRegression

    train, valid = cloud(60, 0), cloud(30, 1)
    right = []
    for c in INVERSE_PENALTIES:
        predicted = LogisticRegression(C=c, max_iter=5000).fit(train.vectors, train.labels).predict(valid.vectors)
        right.append(sum(one == other for one, other in zip(predicted, valid.labels, strict=True)))
    assert fit_probe(train, valid)[1] == INVERSE_PENALTIES[right.index(max(right))]


def test_a_draw_holds_so_many_of_each_class_and_none_twice() -> None:
    labels = ["b", "a", "b", "a", "a", "b", "a"]
    draws = few_shot_rows(labels, 3, 20, seed=0)
    for rows in draws:
        assert [labels[row] for row in rows] == ["a"] * 3 + ["b"] * 3
        assert len(set(rows.tolist())) == 6
    assert len({tuple(rows) for rows in draws}) > 1
    assert [rows.tolist() for rows in few_shot_rows(labels, 3, 5, seed=0)] == [rows.tolist() for rows in draws[:5]]


def test_more_labels_than_there_are_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"5 documents of each class were asked for, 'b' has 2 to learn from"):
        few_shot_rows(["a"] * 5 + ["b"] * 2, 5, 1, seed=0)


def test_few_shots_are_each_draw_fitted_by_itself() -> None:
    from sklearn.linear_model import LogisticRegression

    train, test = cloud(60, 0), cloud(40, 2)
    draws = few_shot(train, test, 5, 3, seed=4)
    for rows, accuracy, macro_f1 in zip(
        few_shot_rows(train.labels, 5, 3, 4), draws.accuracy, draws.macro_f1, strict=True
    ):
        probe = LogisticRegression(C=FEW_SHOT_C).fit(train.vectors[rows], [train.labels[row] for row in rows])
        expected = judge(test.labels, probe.predict(test.vectors))
        assert (accuracy, macro_f1) == (expected["accuracy"], expected["macro_f1"])


def test_metrics_equal_counting() -> None:
    labels, predicted = ["a", "a", "a", "b", "b", "c"], ["a", "a", "b", "b", "c", "b"]
    f1 = {"a": 2 * 2 / (2 * 2 + 0 + 1), "b": 2 * 1 / (2 * 1 + 2 + 1), "c": 0.0}
    assert judge(labels, predicted) == pytest.approx({"accuracy": 3 / 6, "macro_f1": sum(f1.values()) / 3})
