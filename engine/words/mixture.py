"""How much of each shared term goes to each pair of sections: a mixture over pairs. Pure array functions.

A term t that adds x_t to a score has in pair p = (i, j) of a query section and a target section the share

    a0_tp = tf_qi(t) / tf_q(t)  tf_dj(t) / tf_d(t)

of its occurrences. A term of many sections says little about where two texts match, so its contribution goes where
the other evidence is. With g_p the contribution of the passages of a pair, from a = a0 on,

    M_p  <- g_p + sum_t x_t a_tp
    a_tp <- a0_tp M_p / sum_p' a0_tp' M_p'

are the steps of expectation maximisation (Dempster, Laird & Rubin 1977) for the weights of a mixture whose components
are the pairs. The shares of a term always sum to 1, so sums per term and in all stay exact.

Letters in shapes: T shared terms, A query sections, B target sections, n and m rows of shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.work import step

ROUNDS = 5  # in 440 proposals the best five pairs have 0.63 of a score after 5 rounds, 0.64 after 20
_ROWS_AT_ONCE = 1 << 20  # of terms in pairs of sections, in memory at one time
# For the limits of a server: memory of a pair of sections, and of a term in a pair, if all were there at one time.
_PAIR_BYTES, _ROW_BYTES = 64, 80


@dataclass(frozen=True, slots=True)
class SectionShares:
    """The share of the occurrences of each term that is in each section of one text; a row for each that is not 0."""

    terms: NDArray[np.int64]  # (n,) 0 to T-1, rising
    sections: NDArray[np.int64]  # (n,) rising for each term
    shares: NDArray[np.float64]  # (n,) of each term they sum to 1

    def of(self, section: int) -> SectionShares:
        """The rows of one section."""
        at = np.flatnonzero(self.sections == section)
        return SectionShares(self.terms[at], self.sections[at], self.shares[at])


class Mixture:
    """The contributions of T shared terms, distributed over A x B pairs of sections."""

    def __init__(
        self,
        query: SectionShares,
        target: SectionShares,
        contributions: NDArray[np.float64],
        passages: NDArray[np.float64],
        rounds: int = ROUNDS,
    ) -> None:
        """Distribute contributions.

        Args:
            query: shares of the T terms in the query's sections.
            target: their shares in the target's sections.
            contributions: (T,) x_t.
            passages: (A, B) g_p.
            rounds: how often the shares are updated; with 0 they are a0.
        """
        self._query, self._target, self._contributions = query, target, contributions
        self._n_target = np.bincount(target.terms, minlength=len(contributions))
        self._first = np.cumsum(self._n_target) - self._n_target
        step(_PAIR_BYTES * passages.size + _ROW_BYTES * int(self._n_target[query.terms].sum()))
        total = np.ones_like(passages)
        for _ in range(rounds + 1):
            self._weights = total  # (A, B) by which a0 was multiplied
            self.masses = self._spread()  # (A, B) contribution of all terms
            total = passages + self.masses

    def _spread(self) -> NDArray[np.float64]:
        """The contribution (A, B) of all terms to each pair; also keeps x_t over the norm of each term."""
        masses = np.zeros(self._weights.size)
        self._scales = np.zeros(len(self._contributions))  # (T,)
        for terms, pairs, shares in self._rows():
            weighted = shares * self._weights.ravel()[pairs]
            norms = np.bincount(terms, weighted, minlength=len(self._scales))
            of_block = np.divide(self._contributions, norms, out=np.zeros_like(norms), where=norms > 0)
            self._scales += of_block
            masses += np.bincount(pairs, weighted * of_block[terms], minlength=len(masses))
        return masses.reshape(self._weights.shape)

    def _rows(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
        """Term, pair and a0 of each term in each pair that has it, some whole terms at a time."""
        n_columns, mine, theirs = self._weights.shape[1], self._query, self._target
        ends = np.cumsum(self._n_target[mine.terms])
        begins = np.flatnonzero(np.diff(mine.terms, prepend=-1))  # a block never divides the rows of a term
        block = (ends[begins] - 1) // _ROWS_AT_ONCE
        borders = [*begins[np.flatnonzero(np.diff(block, prepend=-1))].tolist(), len(mine.terms)]
        for start, stop in pairwise(borders):
            step()
            counts = self._n_target[mine.terms[start:stop]]
            left = np.repeat(np.arange(start, stop), counts)
            within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
            right = within + self._first[mine.terms[left]]
            pairs = mine.sections[left] * n_columns + theirs.sections[right]
            yield mine.terms[left], pairs, mine.shares[left] * theirs.shares[right]

    def of_pair(self, query_section: int, target_section: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The terms of one pair, and what each of them contributes to the pair."""
        mine, theirs = self._query.of(query_section), self._target.of(target_section)
        terms, at, there = np.intersect1d(mine.terms, theirs.terms, assume_unique=True, return_indices=True)
        weight = self._weights[query_section, target_section]
        return terms, self._scales[terms] * mine.shares[at] * theirs.shares[there] * weight
