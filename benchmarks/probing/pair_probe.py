"""Whether two documents match, learned from their frozen vectors, or predicted by a threshold on their cosine.

LRA (Tay et al. 2021, arXiv:2011.04006) asks so of citations in AAN, from two towers
that read bytes; DocSplit (2023, section 4.4) asks it of frozen embeddings without saying
how. Here a logistic regression, see `benchmarks.probing.linear_probe`, reads

    [u, v, u * v, |u - v|]

the vector of LRA's "NLI" interaction with |u - v| in place of u - v. Accuracies are
not those of LRA's byte-level leaderboard, and not to be set beside them.

Letters in shapes: N pairs, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.pairs.judging import accuracy_threshold
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import Split
from benchmarks.probing.frozen_vectors import FrozenVectors
from benchmarks.probing.linear_probe import AnyVectors, Examples, fit_probe

MATCH, OTHER = "match", "other"


@dataclass(frozen=True)
class Prediction:
    """What was said of the pairs of test, and by which setting, chosen on valid."""

    predicted: list[str]  # `MATCH` or `OTHER`
    setting: float  # C of the regression, or the threshold


def by_probe(pairs: Mapping[Split, Sequence[Pair]], vectors: FrozenVectors) -> Prediction:
    """Learn from the pairs of train, choose C on valid."""
    train, valid, test = (
        Examples(pair_vectors(*_both(pairs[split], vectors)), labels_of(pairs[split]))
        for split in (Split.TRAIN, Split.VALID, Split.TEST)
    )
    probe, c = fit_probe(train, valid)
    return Prediction(probe.predict(test.vectors).tolist(), c)


def by_cosine(pairs: Mapping[Split, Sequence[Pair]], vectors: FrozenVectors) -> Prediction:
    """Call a match what is above the threshold of highest accuracy on valid; nothing is learned from train."""
    scores = {split: _cosine(*_both(pairs[split], vectors)) for split in (Split.VALID, Split.TEST)}
    threshold = accuracy_threshold(scores[Split.VALID], [pair.is_match for pair in pairs[Split.VALID]])
    return Prediction([MATCH if score > threshold else OTHER for score in scores[Split.TEST]], threshold)


def pair_vectors(first: AnyVectors, second: AnyVectors) -> AnyVectors:
    """[u, v, u * v, |u - v|] of N pairs: (N, 4 D), sparse where the rows are."""
    if isinstance(first, np.ndarray):
        return np.hstack([first, second, first * second, np.abs(first - second)])
    from scipy.sparse import hstack

    return hstack([first, second, first.multiply(second), abs(first - second)], format="csr")


def labels_of(pairs: Sequence[Pair]) -> list[str]:
    """`MATCH` or `OTHER` for each pair."""
    return [MATCH if pair.is_match else OTHER for pair in pairs]


def _both(pairs: Sequence[Pair], vectors: FrozenVectors) -> tuple[AnyVectors, AnyVectors]:
    return vectors.of([pair.first for pair in pairs]), vectors.of([pair.second for pair in pairs])


def _cosine(first: AnyVectors, second: AnyVectors) -> NDArray[np.float64]:
    products = first * second if isinstance(first, np.ndarray) else first.multiply(second)
    return np.asarray(products.sum(axis=1), dtype=np.float64).ravel()
