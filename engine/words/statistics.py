"""How probable each term is in the language of a corpus. Pure arrays: no text, no files.

Letters in shapes: V terms of the statistics, T terms looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.words.counts import TermTable, WordTables


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
