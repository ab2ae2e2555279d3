"""Scores of several queries over one table, which is inverted once for all of them. Pure array functions.

Letters in shapes: K queries, N documents of the table, U distinct terms of all queries, M their places in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.words.counts import KeptTable, TermCounts
from engine.words.likelihood import QueryTerms, scores, shared_terms, shares_of

FEWEST_QUERIES = 8  # from which on inverting the table is cheaper than a pass for each query


def scores_of_many(queries: Sequence[QueryTerms], table: TermCounts | KeptTable) -> NDArray[np.float64]:
    """s(q, d) (K, N) in [0, 1], equal to `engine.words.likelihood.scores` for each query to the last digit."""
    found = np.zeros((len(queries), table.n_documents))
    if len(queries) < FEWEST_QUERIES:
        for row, query in enumerate(queries):
            found[row] = scores(query, table)
        return found
    turned, lengths = _turned(queries, table), table.lengths()
    for row, query in enumerate(queries):
        places, terms = turned.places(query)
        documents = turned.documents[places]
        shares = shares_of(query, terms, turned.counts[places], lengths[documents])
        # The terms rise, so each document adds up its shares in the same order as `scores` does.
        found[row] = np.minimum(1.0, np.bincount(documents, shares, minlength=table.n_documents))
    return found


@dataclass(frozen=True, slots=True)
class _Turned:
    """The places of each term of some queries in a table."""

    terms: NDArray[np.uint32]  # (U,) rising
    starts: NDArray[np.int64]  # (U + 1,) first place of each term, and M
    documents: NDArray[np.int64]  # (M,) rising within a term
    counts: NDArray[np.integer]  # (M,)

    def places(self, query: QueryTerms) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All places of a query's terms, and for each the place of its term in the query; the terms rise."""
        at = np.searchsorted(self.terms, query.terms)
        sizes = self.starts[at + 1] - self.starts[at]
        ends = np.cumsum(sizes)
        n_places = int(ends[-1]) if len(ends) else 0
        places = np.arange(n_places) + np.repeat(self.starts[at] - ends + sizes, sizes)
        return places, np.repeat(np.arange(len(at)), sizes)


def _turned(queries: Sequence[QueryTerms], table: TermCounts | KeptTable) -> _Turned:
    terms = np.unique(np.concatenate([query.terms for query in queries]))
    ones = np.ones(len(terms))
    found = shared_terms(QueryTerms(terms, ones, ones), table)
    order = np.argsort(found.terms, kind="stable")
    starts = np.searchsorted(found.terms[order], np.arange(len(terms) + 1))
    return _Turned(terms, starts, found.documents[order], found.counts[order])
