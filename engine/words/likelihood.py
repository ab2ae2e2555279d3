"""How well documents account for the terms of a query, by how probable each term is in the corpus. Pure functions.

With tf counts, |d| occurrences of all terms in d, and p(t) the probability of t in the corpus (an occurrence in
the title counts several times in tf, once in |d|; see `engine.words.apart`):

    a_t = 1 + ln tf_q(t)             b_t(d) = ln(1 + alpha tf_d(t) / (|d| p(t)))
    s(q, d) = min(1, sum_t a_t b_t(d) / sum_t a_t b_t(q))                            in [0, 1]

b is the weight of a term under a language model with Jelinek-Mercer smoothing (Zhai & Lafferty
2004, ACM TOIS 22(2), with lambda / (1 - lambda) = 1 / alpha); the query's
counts are damped by a logarithm, and the sum is divided by the query's own, so that the
score does not depend on the query's length. It is a sum over terms. Where the sections of the
query have weights, a_t is multiplied by the mean weight of the places of t.

For containment (how much of a query a document contains), the same sum has other terms, so that
a long document scores no lower than a short one, and s is 1 if a document has all occurrences of all terms:

    a_t = tf_q(t) ln(1 + 1 / p(t))   b_t(d) = min(tf_d(t), tf_q(t)) / tf_q(t)

It is the containment of Broder (1997, "On the resemblance and containment of documents"), over
words, or pairs of words as shingles, that are weighted by their information.

For several queries a table is inverted once; they are given together, or come one after another.

Letters in shapes: V terms of the statistics, T terms looked up, N documents, Q terms of the query, K queries, U
distinct terms of all queries, M their places in the table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.words.apart import ranges
from engine.words.counts import KeptTable, TermCounts, TermTable, WordTables


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Occurrences of one kind of term in a corpus; terms that occurred only once are not kept."""

    terms: NDArray[np.uint32]  # (V,) rising
    counts: NDArray[np.uint32]  # (V,) at least 2
    total: int  # occurrences of all terms

    def probabilities(self, terms: NDArray[np.uint32]) -> NDArray[np.float64]:
        """p(t) (T,) in (0, 1]: count over total, where a term that is not kept counts 1."""
        counts = np.ones(len(terms))
        if len(self.terms):
            at = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
            counts = np.where(self.terms[at] == terms, self.counts[at], 1).astype(np.float64)
        return counts / max(1, self.total)


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a corpus: of its words, and of its pairs."""

    words: TermStatistics
    pairs: TermStatistics


def collect(tables: Iterable[WordTables]) -> Statistics:
    """Add up the counts of a corpus, which comes in parts; memory is that of its distinct terms."""
    words, pairs = _Sum(), _Sum()
    for part in tables:
        words.add(part.words)
        pairs.add(part.pairs)
    return Statistics(words.statistics(), pairs.statistics())


class _Sum:
    """Counts by term; parts are merged once they are as large as the sum so far, so each is sorted only a few times."""

    def __init__(self) -> None:
        self._terms = np.empty(0, np.uint32)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = []
        self._n_waiting = 0

    def add(self, table: TermTable) -> None:
        self._waiting.append(_summed(table.terms, table.counts.astype(np.int64)))
        self._n_waiting += len(self._waiting[-1][0])
        if self._n_waiting > max(1 << 20, len(self._terms)):
            self._merge()

    def _merge(self) -> None:
        parts = [(self._terms, self._counts), *self._waiting]
        self._terms, self._counts = _summed(
            np.concatenate([terms for terms, _ in parts]), np.concatenate([counts for _, counts in parts])
        )
        self._waiting, self._n_waiting = [], 0

    def statistics(self) -> TermStatistics:
        self._merge()
        kept = self._counts > 1
        counts = np.minimum(self._counts[kept], np.iinfo(np.uint32).max).astype(np.uint32)
        return TermStatistics(self._terms[kept], counts, int(self._counts.sum()))


def _summed(terms: NDArray[np.uint32], counts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    order = np.argsort(terms, kind="stable")
    terms, counts = terms[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], terms[1:] != terms[:-1]])) if len(terms) else np.empty(0, np.int64)
    return terms[first], np.add.reduceat(counts, first) if len(first) else counts


ALPHA = 0.05


@dataclass(frozen=True)
class QueryTerms:
    """The terms of one kind of a query, weighted."""

    terms: NDArray[np.uint32]  # (Q,) rising
    weights: NDArray[np.float64]  # (Q,) a_t over the norm: the score is sum_t weights_t b_t(d)
    rates: NDArray[np.float64]  # (Q,) alpha / p(t)
    counts: NDArray[np.float64] | None = None  # (Q,) tf_q(t), where b_t(d) is the share of them that d has

    @cached_property
    def lookup(self) -> tuple[NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]]:
        """By low bits (2 ** 16,) whether a term has them, and the place of the first, or -1; (Q,) the next, or -1.

        A lookup in a small table saves the search for most terms, and finds the place of the others among the Q.
        """
        lows = self.terms.astype(np.uint16)
        order = np.argsort(lows, kind="stable").astype(np.int32)
        is_next = lows[order][1:] == lows[order][:-1]
        following = np.full(len(order), -1, np.int32)
        following[order[:-1][is_next]] = order[1:][is_next]
        first = np.full(1 << 16, -1, np.int32)
        first[lows[order[::-1]]] = order[::-1]
        return first >= 0, first, following

    def may_have(self, terms: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which of some terms (T,) can be among those of the query, few others included."""
        return self.lookup[0][terms.astype(np.uint16)]


def query_terms(query: TermTable, statistics: TermStatistics, means: NDArray[np.float64] | None = None) -> QueryTerms:
    """Weigh the terms of a query.

    Args:
        means: (Q,) mean weight of the places of each term; 1 by default.
    """
    counts = query.counts.astype(np.float64)
    rates = ALPHA / statistics.probabilities(query.terms)
    length = max(1.0, float(query.lengths().sum()))
    weights = (1 + np.log(counts)) * (1 if means is None else means)
    norm = float(weights @ np.log1p(rates * counts / length)) if len(counts) else 1.0
    return QueryTerms(query.terms, weights / norm, rates)


def cover_terms(query: TermTable, statistics: TermStatistics, means: NDArray[np.float64] | None = None) -> QueryTerms:
    """Weigh the terms of a query by their share of its information; `query` counts titles like other text.

    The other arguments are those of `query_terms`.
    """
    counts = query.counts.astype(np.float64)
    probabilities = statistics.probabilities(query.terms)
    weights = counts * np.log1p(1 / probabilities) * (1 if means is None else means)
    return QueryTerms(query.terms, weights / (weights.sum() or 1.0), ALPHA / probabilities, counts)


@dataclass(frozen=True, slots=True)
class SharedTerms:
    """Where the terms of a query occur in a table."""

    documents: NDArray[np.int64]  # (M,) rows of the table, rising
    terms: NDArray[np.int64]  # (M,) places in the query's terms, rising within a document
    counts: NDArray[np.integer]  # (M,) tf_d(t)


def shared_terms(query: QueryTerms, table: TermCounts | KeptTable) -> SharedTerms:
    """Every term that the query shares with a document."""
    if isinstance(table, KeptTable):
        return _left_terms(query, table)
    lows, (is_there, first, following) = table.low_bits(), query.lookup
    places = np.flatnonzero(is_there[lows])
    documents, at = table.rows_at(places), first[lows[places]].astype(np.int64)
    terms = table.terms_at(places, documents)
    others = np.flatnonzero(query.terms[at] != terms)
    while len(others):
        at[others] = following[at[others]]
        others = others[at[others] >= 0]
        others = others[query.terms[at[others]] != terms[others]]
    stands = at >= 0
    places, documents, at = places[stands], documents[stands], at[stands]
    return SharedTerms(documents, at, table.counts_at(places, documents))


def _left_terms(query: QueryTerms, table: KeptTable) -> SharedTerms:
    """Every term that the query shares with the remaining sections of a document."""
    whole, groups, n_terms = shared_terms(query, table.whole), shared_terms(query, table.groups), len(query.terms)
    keys = table.left_out.documents[groups.documents] * n_terms + groups.terms
    at = np.searchsorted(whole.documents * n_terms + whole.terms, keys)
    changes = groups.counts * table.left_out.times[groups.documents]
    counts = whole.counts - np.bincount(at, changes, minlength=len(whole.counts)).astype(np.int64)
    left = counts > 0
    return SharedTerms(whole.documents[left], whole.terms[left], counts[left])


def shares_of(
    query: QueryTerms, terms: NDArray[np.int64], counts: NDArray[np.integer], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The contributions of terms to scores, weights_t b_t(d) (M,).

    Args:
        query: the weighted terms.
        terms: (M,) places among the terms of the query.
        counts: (M,) tf_d(t).
        lengths: (M,) |d|.
    """
    if query.counts is not None:
        return np.asarray(query.weights[terms] * np.minimum(1.0, counts / query.counts[terms]))
    shares: NDArray[np.float64] = counts / lengths  # one array is reused, as a large query has many places
    shares *= query.rates[terms]
    np.log1p(shares, out=shares)
    shares *= query.weights[terms]
    return shares


def matches(query: QueryTerms, table: TermCounts | KeptTable) -> tuple[SharedTerms, NDArray[np.float64]]:
    """Every term that the query shares with a document, and its contribution (M,) to the score."""
    found = shared_terms(query, table)
    return found, shares_of(query, found.terms, found.counts, table.lengths()[found.documents])


def scores(query: QueryTerms, table: TermCounts | KeptTable) -> NDArray[np.float64]:
    """s(q, d) (N,) in [0, 1]; the sum runs in the order of the terms, so that it is the same in any table."""
    found, shares = matches(query, table)
    summed = np.bincount(found.documents, shares, minlength=table.n_documents)
    return np.minimum(1.0, summed)


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
    keys = table.terms_at(places, documents).astype(np.int64)
    keys <<= _PLACE_BITS
    keys |= places
    documents = documents.astype(np.int32)
    keys.sort()
    places = keys & ((1 << _PLACE_BITS) - 1)
    keys >>= _PLACE_BITS
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return InvertedTable(
        keys[starts].astype(np.uint32),
        np.append(starts, n_places),
        documents[places],
        counts[places],
        table.lengths(),
    )
