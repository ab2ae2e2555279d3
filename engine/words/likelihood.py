"""How well a document accounts for the terms of a query, without any network. Pure array functions.

With tf counts, |d| occurrences of all terms in d, and p(t) the probability of t in the corpus:

    a_t = 1 + ln tf_q(t)             b_t(d) = ln(1 + alpha tf_d(t) / (|d| p(t)))
    s(q, d) = min(1, sum_t a_t b_t(d) / sum_t a_t b_t(q))                            in [0, 1]

b is the weight of a term under a language model with Jelinek-Mercer smoothing (Zhai & Lafferty
2004, ACM TOIS 22(2), with lambda / (1 - lambda) = 1 / alpha); the query's
counts are damped by a logarithm, and the sum is divided by the query's own, so that the
score does not depend on the query's length. It is a sum over terms.

Letters in shapes: N documents, T their terms, Q terms of the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.words.counts import TermTable
from engine.words.statistics import TermStatistics

ALPHA = 0.05
_FILTER_BITS = 16


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of one kind of a query, weighted."""

    terms: NDArray[np.uint32]  # (Q,) rising
    weights: NDArray[np.float64]  # (Q,) a_t over the norm: the score is sum_t weights_t b_t(d)
    rates: NDArray[np.float64]  # (Q,) alpha / p(t)


def query_terms(query: TermTable, statistics: TermStatistics) -> QueryTerms:
    """Weigh the terms of a query.

    Args:
        query: counts of one document.
        statistics: of the corpus.
    """
    counts = query.counts.astype(np.float64)
    rates = ALPHA / statistics.probabilities(query.terms)
    length = max(1.0, counts.sum())
    weights = 1 + np.log(counts)
    norm = float(weights @ np.log1p(rates * counts / length)) if len(counts) else 1.0
    return QueryTerms(query.terms, weights / norm, rates)


@dataclass(frozen=True, slots=True)
class TermMatches:
    """The terms that a query shares with documents, and what each adds to a score."""

    documents: NDArray[np.int64]  # (M,) rows of the table, rising
    terms: NDArray[np.int64]  # (M,) places in the query's terms, rising within a document
    shares: NDArray[np.float64]  # (M,) weights_t b_t(d)


def matches(query: QueryTerms, table: TermTable) -> TermMatches:
    """Every term that stands in the query and in a document."""
    might = np.flatnonzero(_filter(query.terms)[table.terms & ((1 << _FILTER_BITS) - 1)])
    terms = table.terms[might]
    at = np.minimum(np.searchsorted(query.terms, terms), max(0, len(query.terms) - 1))
    stands = query.terms[at] == terms if len(query.terms) else np.zeros(len(terms), bool)
    places, at = might[stands], at[stands]
    documents = np.searchsorted(table.starts, places, side="right") - 1
    frequency = table.counts[places] / table.lengths()[documents]
    return TermMatches(documents, at, query.weights[at] * np.log1p(query.rates[at] * frequency))


def scores(query: QueryTerms, table: TermTable) -> NDArray[np.float64]:
    """s(q, d) (N,) in [0, 1]; the sum runs in the order of the terms, so that it is the same in any table."""
    found = matches(query, table)
    summed = np.bincount(found.documents, found.shares, minlength=table.n_documents)
    return np.minimum(1.0, summed)


def _filter(terms: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which low bits occur at all: one look at a small table spares most terms a binary search."""
    present = np.zeros(1 << _FILTER_BITS, bool)
    present[terms & ((1 << _FILTER_BITS) - 1)] = True
    return present
