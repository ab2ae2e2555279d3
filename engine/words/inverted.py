"""Scores of several queries over one table, which is inverted once for all of them. Pure array functions.

The queries are given together, or come one after another to a table that stays the same.

Letters in shapes: K queries, N documents of the table, U distinct terms of all queries, M their places in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.words.apart import ranges
from engine.words.counts import KeptTable, TermCounts
from engine.words.likelihood import QueryTerms, scores, shared_terms, shares_of

FEWEST_QUERIES = 8  # from which on inverting the table is cheaper than a pass for each query
MOST_PLACES = 1 << 23  # terms in documents that are inverted in memory, in 6 bytes each
_PLACE_BITS = 23  # of a number that sorts places by term


def scores_of_many(queries: Sequence[QueryTerms], table: TermCounts | KeptTable) -> NDArray[np.float64]:
    """s(q, d) (K, N) in [0, 1], equal to `engine.words.likelihood.scores` for each query to the last digit."""
    found = np.zeros((len(queries), table.n_documents))
    if len(queries) < FEWEST_QUERIES:
        for row, query in enumerate(queries):
            found[row] = scores(query, table)
        return found
    turned = _turned(queries, table)
    for row, query in enumerate(queries):
        found[row] = turned.scores(query)
    return found


@dataclass(frozen=True, slots=True)
class InvertedTable:
    """The places of each term of some queries, or of all terms, in a table."""

    terms: NDArray[np.uint32]  # (U,) rising
    starts: NDArray[np.int64]  # (U + 1,) first place of each term, and M
    documents: NDArray[np.integer]  # (M,) rising within a term
    counts: NDArray[np.integer]  # (M,)
    lengths: NDArray[np.float64]  # (N,) |d|

    def scores(self, query: QueryTerms) -> NDArray[np.float64]:
        """s(q, d) (N,), equal to `engine.words.likelihood.scores` to the last digit."""
        places, terms = self.places(query)
        documents = self.documents[places]
        shares = shares_of(query, terms, self.counts[places], self.lengths[documents])
        # The terms rise, so each document adds up its shares in the same order as `scores` does.
        return np.minimum(1.0, np.bincount(documents, shares, minlength=len(self.lengths)))

    def places(self, query: QueryTerms) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All places of a query's terms, and for each the place of its term in the query; the terms rise."""
        at = np.minimum(np.searchsorted(self.terms, query.terms), len(self.terms) - 1)
        sizes = (self.starts[at + 1] - self.starts[at]) * (self.terms[at] == query.terms)
        return ranges(self.starts[at], sizes), np.repeat(np.arange(len(at)), sizes)


def _turned(queries: Sequence[QueryTerms], table: TermCounts | KeptTable) -> InvertedTable:
    terms = np.unique(np.concatenate([query.terms for query in queries]))
    ones = np.ones(len(terms))
    found = shared_terms(QueryTerms(terms, ones, ones), table)
    order = np.argsort(found.terms, kind="stable")
    starts = np.searchsorted(found.terms[order], np.arange(len(terms) + 1))
    return InvertedTable(terms, starts, found.documents[order], found.counts[order], table.lengths())


def inverted(table: TermCounts) -> InvertedTable | None:
    """All terms of a table, for many queries one after another; None if there are none, or more than `MOST_PLACES`."""
    n_places = len(table.low_bits())
    if not 0 < n_places <= MOST_PLACES:
        return None
    places = np.arange(n_places)
    documents = table.rows_at(places)
    counts = table.counts_at(places, documents).astype(np.uint16)
    keys = table.terms_at(places, documents).astype(np.int64) << _PLACE_BITS
    keys |= places
    keys.sort()
    places = keys & ((1 << _PLACE_BITS) - 1)
    keys >>= _PLACE_BITS
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return InvertedTable(
        keys[starts].astype(np.uint32),
        np.append(starts, n_places),
        documents.astype(np.int32)[places],
        counts[places],
        table.lengths(),
    )
