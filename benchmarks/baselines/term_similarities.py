"""Similarities of two texts by their terms only; pure functions of counts.

Letters in shapes: N texts, T terms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
N_SIMILARITIES = 5
K1, B = 1.5, 0.75  # the values of the BM25 baseline


def term_similarities(first: Rows, second: Rows, idf: Rows) -> Rows:
    """Compare texts row by row in the five ways of Liu et al. (2019, ACL, arXiv:1802.07459), section 4.

    With tf the counts of a text, A and B the sets of terms of the two, and cos the cosine:

        cos(tf idf, tf idf'),  cos(tf, tf'),  cos(bm25, bm25'),  |A & B| / |A | B|,  |A & B| / sqrt(|A| |B|)
        bm25 = idf tf (K1 + 1) / (tf + K1 (1 - B + B |d| / mean |d|))

    The last two are Jaccard's and Ochiai's. The paper names a similarity by BM25 without a formula.
    Here the cosine makes BM25 symmetric, and the mean length is over all given texts that are not empty.

    Args:
        first: (N, T) counts.
        second: (N, T) counts.
        idf: (T,) above 0.

    Returns:
        (N, 5) in [0, 1]; 0 where a text is empty. Exchanging the two sides gives the same values.
    """
    frequencies = _bm25(first, second)
    held = (first > 0).astype(np.float64), (second > 0).astype(np.float64)
    sizes = held[0].sum(1), held[1].sum(1)
    shared = (held[0] * held[1]).sum(1)
    columns = (
        _cosine(first * idf, second * idf),
        _cosine(first, second),
        _cosine(frequencies[0] * idf, frequencies[1] * idf),
        _ratio(shared, sizes[0] + sizes[1] - shared),
        _ratio(shared, np.sqrt(sizes[0] * sizes[1])),
    )
    return np.clip(np.stack(columns, 1), 0.0, 1.0)  # rounding can exceed 1


def cosines(rows: Rows) -> Rows:
    """(N, N) cosines of all pairs of rows (N, T); 0 where a row is zero, including with itself."""
    lengths = np.linalg.norm(rows, axis=1)
    return _ratio(rows @ rows.T, lengths[:, None] * lengths)


def _bm25(first: Rows, second: Rows) -> tuple[Rows, Rows]:
    """The saturated term counts of BM25, before idf."""
    lengths = first.sum(1), second.sum(1)
    real = np.concatenate(lengths)
    mean = real[real > 0].mean() if (real > 0).any() else 1.0

    def saturated(counts: Rows, length: Rows) -> Rows:
        return counts * (K1 + 1) / (counts + K1 * (1 - B + B * length[:, None] / mean))

    return saturated(first, lengths[0]), saturated(second, lengths[1])


def _cosine(first: Rows, second: Rows) -> Rows:
    return _ratio((first * second).sum(1), np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1))


def _ratio(over: Rows, under: Rows) -> Rows:
    """The quotient `over` / `under`, and 0 where `under` is 0."""
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)
