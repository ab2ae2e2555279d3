"""Documents as points of a plane: the first two principal components of their vectors, or of their weighted words.

Pure arrays. Letters in shapes: N documents, D width, V terms, K components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.words.counts import TermTable
from engine.words.likelihood import ALPHA
from engine.words.statistics import TermStatistics

Points = NDArray[np.float64]
MOST_TERMS = 50_000  # the heaviest terms; the others hardly move a point
_FEWEST_DOCUMENTS = (2, 5)  # least number of documents that must have a term; 5 for 75 documents or more
_PER_DOCUMENT = 15
_K = 2
_SPARE = 8  # further components that the iteration carries, for its accuracy
_ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class Projection:
    """Points of documents, and the function that places further documents."""

    points: Points  # (N, 2)
    shares: tuple[float, float]  # of the variance, in [0, 1]
    place: Callable[[NDArray[np.float64]], Points]  # rows (n, D or V) -> (n, 2)


@dataclass(frozen=True, slots=True)
class TermRows:
    """Weighted terms of documents, unit rows of a sparse matrix (N, V)."""

    terms: NDArray[np.uint32]  # (V,) rising
    rows: NDArray[np.int64]  # document of each weight
    columns: NDArray[np.int64]  # term of each weight
    weights: NDArray[np.float64]
    n_rows: int

    def times(self, matrix: Points) -> Points:
        """The product (N, K) with a matrix (V, K)."""
        return self._sums(self.rows, self.columns, matrix, self.n_rows)

    def transposed_times(self, matrix: Points) -> Points:
        """The product (V, K) of the transposed with a matrix (N, K)."""
        return self._sums(self.columns, self.rows, matrix, len(self.terms))

    def _sums(self, into: NDArray[np.int64], of: NDArray[np.int64], matrix: Points, size: int) -> Points:
        sums = np.empty((size, matrix.shape[1]))
        for number, column in enumerate(matrix.T):
            sums[:, number] = np.bincount(into, self.weights * column[of], size)
        return sums

    def dense(self) -> Points:
        """All rows (N, V)."""
        whole = np.zeros((self.n_rows, len(self.terms)))
        whole[self.rows, self.columns] = self.weights
        return whole


def term_rows(table: TermTable, statistics: TermStatistics, terms: NDArray[np.uint32] | None = None) -> TermRows:
    """Weigh the terms of documents as the score does: b_t(d) = ln(1 + alpha tf / (|d| p(t))), then unit rows."""
    lengths = np.maximum(1.0, table.lengths())[table.rows()]
    weights = np.log1p(ALPHA * table.counts / (lengths * statistics.probabilities(table.terms)))
    if terms is None:
        terms = _heaviest(table.terms, weights, table.n_documents)
    at = np.minimum(np.searchsorted(terms, table.terms), max(0, len(terms) - 1))
    kept = terms[at] == table.terms if len(terms) else np.zeros(len(table.terms), bool)
    rows, columns, weights = table.rows()[kept], at[kept], weights[kept]
    norms = np.sqrt(np.bincount(rows, weights**2, table.n_documents))
    return TermRows(terms, rows, columns, weights / norms[rows], table.n_documents)


def _heaviest(terms: NDArray[np.uint32], weights: NDArray[np.float64], n_documents: int) -> NDArray[np.uint32]:
    # Rare terms weigh most: those of two documents alone would give an axis to each pair of near-duplicates.
    fewest = int(np.clip(n_documents // _PER_DOCUMENT, *_FEWEST_DOCUMENTS))
    found, places, counts = np.unique(terms, return_inverse=True, return_counts=True)
    sums = np.where(counts >= fewest, np.bincount(places, weights, len(found)), 0.0)
    best = np.argsort(-sums, kind="stable")[:MOST_TERMS]
    return np.sort(found[best[sums[best] > 0]])


def project_vectors(vectors: Vectors) -> Projection:
    """Principal components of document vectors."""
    rows = vectors.astype(np.float64)
    mean = rows.mean(0) if len(rows) else np.zeros(rows.shape[1])
    centred = rows - mean
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = _turned(axes[:, ::-1][:, :_K])
    points = centred @ axes
    return Projection(
        _planar(points), _shares(points, float((centred**2).sum())), lambda new: _planar((new - mean) @ axes)
    )


def project_terms(rows: TermRows) -> Projection:
    """Principal components of weighted words, by subspace iteration without a matrix (N, V).

    See Halko et al. 2011, arXiv:0909.4061.
    """
    n_terms = len(rows.terms)
    mean = np.bincount(rows.columns, rows.weights, n_terms) / max(1, rows.n_rows)
    k = min(_K + _SPARE, n_terms, rows.n_rows)
    basis = np.random.default_rng(0).standard_normal((n_terms, k))
    for _ in range(_ITERATIONS):
        left = rows.times(basis) - mean @ basis  # the centred matrix times the basis
        basis = rows.transposed_times(left) - np.outer(mean, left.sum(0))
        basis = np.linalg.qr(basis)[0]
    inner = rows.times(basis) - mean @ basis
    _, turn = np.linalg.eigh(inner.T @ inner)
    axes = _turned(basis @ turn[:, ::-1][:, :_K])
    points = rows.times(axes) - mean @ axes
    variance = float(rows.weights @ rows.weights) - rows.n_rows * float(mean @ mean)
    return Projection(_planar(points), _shares(points, variance), lambda new: _planar(new @ axes - mean @ axes))


def _turned(axes: Points) -> Points:
    """Axes, each with the sign that makes its largest entry positive, so that pictures are the same on all machines."""
    if not axes.size:
        return axes
    largest = axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]
    turned: Points = axes * np.where(largest < 0, -1.0, 1.0)
    return turned


def _planar(points: Points) -> Points:
    """Points in two columns, even if there are fewer components."""
    return np.pad(points, ((0, 0), (0, _K - points.shape[1])))


def _shares(points: Points, variance: float) -> tuple[float, float]:
    first, second = (_planar(points) ** 2).sum(0).tolist()
    return (first / variance, second / variance) if variance > 0 else (0.0, 0.0)
