"""How much of each shared term goes to each pair of sections. Pure array functions.

A term t that adds x_t to a score adds in section i of the query, and in the pair (i, j) with a section of the target,

    x_ti = x_t tf_qi(t) / tf_q(t)        x_tij = x_ti a_tij

where sum_j a_tij = 1. Shares by count, a0_tj = tf_dj(t) / tf_d(t), would spread a term over all sections of the target
that have it, and say little about where two texts match. So it goes where the other evidence is. With g_ij the
contribution of the passages of a pair, from a = a0 on,

    M_ij  <- g_ij + sum_t x_ti a_tij
    a_tij <- a0_tj M_ij^2 / sum_j' a0_tj' M_ij'^2

With M in place of M^2 these are the steps of expectation maximisation (Dempster, Laird & Rubin 1977) for a mixture over
the sections of the target, for each section of the query by itself; the square is a step towards hard assignment. What
a section of the query adds does not change, so sums per term, per section of the query, and in all stay exact. A
mixture over all pairs moves terms between sections of the query too: it is sharper, and less faithful; see
`benchmarks/RESULTS.md`.

Two books have millions of pairs, and a term of both is in thousands of them. Then only the strongest sections of the
query are divided, with the same result: `DividedMixture`. Its cost is that of the texts and of the divided sections.

Letters in shapes: T shared terms, A query sections, B target sections, n and m rows of shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import step
from engine.words.apart import ranges

ROUNDS = 5  # in 440 proposals the best five pairs have 0.55 of a score after 5 rounds
_POWER = 2  # of M; 1 gives 0.49
MOST_ROWS = 1 << 18  # of terms in pairs of sections, and of pairs, that are distributed at one time
N_DIVIDED = 24  # sections of a long query whose contribution is divided among the sections of the target
# For the limits of a server: memory of a pair of sections, and of a term in a pair.
_PAIR_BYTES, _ROW_BYTES = 64, 80


@dataclass(frozen=True)
class TermShares:
    """The share of the occurrences of each term that is in each section of one text; a row for each that is not 0."""

    terms: NDArray[np.int64]  # (n,) 0 to T-1, rising
    sections: NDArray[np.int64]  # (n,) rising for each term
    shares: NDArray[np.float64]  # (n,) of each term they sum to 1

    def of_terms(self, terms: NDArray[np.int64]) -> TermShares:
        """The rows of some rising terms, which are numbered from 0."""
        firsts, stops = np.searchsorted(self.terms, terms), np.searchsorted(self.terms, terms, side="right")
        at = ranges(firsts, stops - firsts)
        return TermShares(np.repeat(np.arange(len(terms)), stops - firsts), self.sections[at], self.shares[at])


class Mixture:
    """The contributions of T shared terms, distributed over A x B pairs of sections."""

    def __init__(
        self,
        query: TermShares,
        target: TermShares,
        contributions: NDArray[np.float64],
        passages: NDArray[np.float64],
        rounds: int = ROUNDS,
    ) -> None:
        """Distribute contributions.

        Args:
            contributions: (T,) x_t.
            passages: (A, B) g_p.
        """
        self._query, self._target = query, target
        self._contributions = contributions[query.terms] * query.shares  # (n,) x_ti
        n_rows = np.bincount(target.terms, minlength=len(contributions))[query.terms]
        step(_PAIR_BYTES * passages.size + _ROW_BYTES * int(n_rows.sum()))
        self._weights = np.ones_like(passages)  # (A, B) by which a0 is multiplied
        rows = self._rows(n_rows, passages.shape[1])
        for at in range(rounds + 1):
            if at:
                self._weights = (passages + self.masses) ** _POWER
            self.masses: NDArray[np.float64] = self._spread(*rows)  # (A, B) contribution of all terms

    def _spread(
        self, rows: NDArray[np.int64], pairs: NDArray[np.int64], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The contribution (A, B) of all terms to each pair; also keeps x_ti over the norm of each row of the query."""
        weighted = shares * self._weights.ravel()[pairs]
        norms = np.bincount(rows, weighted, minlength=len(self._contributions)).astype(np.float64)
        self._scales = np.divide(self._contributions, norms, out=np.zeros_like(norms), where=norms > 0)  # (n,)
        masses = np.bincount(pairs, weighted * self._scales[rows], minlength=self._weights.size)
        return masses.astype(np.float64).reshape(self._weights.shape)

    def _rows(
        self, n_rows: NDArray[np.int64], n_columns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Row of the query, pair and a0 of each term in each pair that has it."""
        mine, theirs = self._query, self._target
        left = np.repeat(np.arange(len(n_rows)), n_rows)
        right = ranges(np.searchsorted(theirs.terms, mine.terms), n_rows)
        return left, mine.sections[left] * n_columns + theirs.sections[right], theirs.shares[right]

    def of_pair(self, query_section: int, target_section: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The terms of one pair, and what each of them contributes to the pair."""
        mine, theirs = (
            np.flatnonzero(shares.sections == section)
            for shares, section in ((self._query, query_section), (self._target, target_section))
        )
        terms, others = self._query.terms[mine], self._target.terms[theirs]
        there = others.searchsorted(terms)
        is_there = np.append(others, -1)[there] == terms
        weight = self._weights[query_section, target_section]
        shares = self._target.shares[theirs[there[is_there]]]
        return terms[is_there], self._scales[mine[is_there]] * shares * weight


def is_long(query: TermShares, target: TermShares, shape: tuple[int, int]) -> bool:
    """Whether two texts have more pairs of sections (A, B), or terms in pairs, than a `Mixture` takes."""
    n_terms = 1 + int(query.terms.max(initial=0))
    n_rows = np.bincount(target.terms, minlength=n_terms)[query.terms].sum()
    return max(int(n_rows), shape[0] * shape[1]) > MOST_ROWS


class DividedMixture:
    """The contributions of T shared terms to the sections of a long query, of which some are divided."""

    def __init__(
        self,
        query: TermShares,
        target: TermShares,
        contributions: NDArray[np.float64],
        passages: NDArray[np.float64],
    ) -> None:
        """Distribute contributions over the sections of the query; `passages` (A,) sum g_p over the pairs of each."""
        self._target = target
        self._by_section = Mixture(query, _undivided(len(contributions)), contributions, passages[:, None])
        self._passages: dict[int, NDArray[np.float64]] = {}  # (B,) of each section that was divided
        # One at a time, since each is as large as the target.
        self._last: tuple[int, NDArray[np.int64], Mixture] | None = None

    @property
    def masses(self) -> NDArray[np.float64]:
        """(A,) contribution of all terms to each section of the query."""
        return np.asarray(self._by_section.masses[:, 0])

    def divide(self, query_section: int, passages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distribute the terms of one section over its pairs (B,), of which `passages` (B,) contribute g_p."""
        self._passages[query_section] = passages
        return np.asarray(self._row(query_section)[1].masses[0])

    def of_pair(self, query_section: int, target_section: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The terms of a pair of a section that was divided, and what each of them contributes to the pair."""
        terms, row = self._row(query_section)
        at, contributions = row.of_pair(0, target_section)
        return terms[at], contributions

    def _row(self, section: int) -> tuple[NDArray[np.int64], Mixture]:
        """The terms of a section that was divided, and their mixture."""
        if self._last is None or self._last[0] != section:
            self._last = None
            terms, contributions = self._by_section.of_pair(section, 0)
            target = self._target.of_terms(terms)
            row = Mixture(_undivided(len(terms)), target, contributions, self._passages[section][None])
            self._last = section, terms, row
        return self._last[1:]


def _undivided(n_terms: int) -> TermShares:
    """The shares of terms in a text of one section."""
    return TermShares(np.arange(n_terms), np.zeros(n_terms, np.int64), np.ones(n_terms))
