from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import PairSplits, Split
from benchmarks.probing.probes import MATCH, OTHER, FrozenVectors, by_cosine, by_probe, labels_of, pair_vectors
from benchmarks.systems import BuildCost

sparse = pytest.importorskip("scipy.sparse")
pytest.importorskip("sklearn")


def vectors_by_hand(first: NDArray[np.float32], second: NDArray[np.float32]) -> list[list[float]]:
    """One pair at a time, one number at a time."""
    rows = []
    for u, v in zip(first.tolist(), second.tolist(), strict=True):
        both = list(zip(u, v, strict=True))
        rows.append([*u, *v, *(x * y for x, y in both), *(abs(x - y) for x, y in both)])
    return rows


def test_vectors_of_pairs_equal_the_equation_dense_and_sparse() -> None:
    first, second = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    first[0, 1] = second[2] = 0
    expected = vectors_by_hand(first, second)
    np.testing.assert_allclose(pair_vectors(first, second), expected, rtol=1e-6)
    found = pair_vectors(sparse.csr_matrix(first), sparse.csr_matrix(second))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)  # type: ignore[union-attr]


@pytest.fixture
def vectors() -> FrozenVectors:
    """Forty documents; the number tells the angle."""
    angles = np.arange(40) * 0.05
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return FrozenVectors("document", "e@0", {f"d{number}": number for number in range(40)}, rows, BuildCost(1.0))


@pytest.fixture
def pairs() -> PairSplits:
    """Documents match that are next to each other; those that do not are nine apart."""

    def both(first: int) -> list[Pair]:
        return [Pair(f"d{first}", f"d{first + 1}", True), Pair(f"d{first}", f"d{first + 9}", False)]

    starts = {Split.TRAIN: range(0, 30, 3), Split.VALID: range(1, 30, 6), Split.TEST: range(2, 30, 6)}
    return {split: tuple(pair for first in firsts for pair in both(first)) for split, firsts in starts.items()}


def test_probe_and_threshold_tell_near_from_far(vectors: FrozenVectors, pairs: PairSplits) -> None:
    expected = [MATCH, OTHER] * 5
    assert labels_of(pairs[Split.TEST]) == expected
    assert by_probe(pairs, vectors).predicted == expected
    told = by_cosine(pairs, vectors)
    assert told.predicted == expected
    assert told.setting == pytest.approx((np.cos(0.05) + np.cos(0.45)) / 2, abs=1e-6)


def test_sparse_rows_are_told_like_dense_ones(vectors: FrozenVectors, pairs: PairSplits) -> None:
    thin = FrozenVectors("tfidf", "", vectors.rows, sparse.csr_matrix(vectors.vectors), vectors.cost)
    assert by_probe(pairs, thin).predicted == by_probe(pairs, vectors).predicted
    assert by_cosine(pairs, thin).setting == pytest.approx(by_cosine(pairs, vectors).setting, abs=1e-6)
