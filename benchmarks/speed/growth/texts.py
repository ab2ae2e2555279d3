"""Term counts like those of real texts, for made documents: drawn from the term statistics of a corpus.

A made document has a template, a real document. Each term of the template is kept with probability
`KEPT`; the other terms are drawn from the corpus. A term occurs in the same share of documents as in
the corpus, and its count is geometric with its mean count in the documents that have it. So a few
terms occur in most documents and most terms in few, as in Zipf's law, and documents of one template
have as much in common as texts of one topic. Half of the rare terms are renamed in each copy of the
corpus: the vocabulary grows with the corpus, but more slowly.

Letters in shapes: N documents of the corpus, V terms, B documents made, T terms of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.words.counts import MOST_COUNT, TermTable, WordTables

KEPT = 0.5  # share of a template's terms that a made document has
_FREQUENT = 0.05  # share of documents from which on a term is drawn for each document by itself
_RARE = 0.01  # share of documents below which half of the terms are renamed in each copy of the corpus


@dataclass(frozen=True)
class KindModel:
    """One kind of term in a corpus."""

    table: TermTable  # of its N documents
    terms: NDArray[np.uint32]  # (V,) rising
    shares: NDArray[np.float64]  # (V,) of documents that have the term
    means: NDArray[np.float64]  # (V,) mean count in the documents that have the term

    @classmethod
    def learn(cls, table: TermTable) -> KindModel:
        """Count documents and occurrences of each term."""
        terms, at, frequencies = np.unique(table.terms, return_inverse=True, return_counts=True)
        totals = np.bincount(at, table.counts, len(terms))
        return cls(table, terms, frequencies / max(1, table.n_documents), totals / np.maximum(1, frequencies))

    def draw(self, templates: NDArray[np.int64], keys: NDArray[np.uint32], rng: np.random.Generator) -> TermTable:
        """The counts of documents made from templates, (B,) rows of the corpus.

        Rare terms are renamed by keys (B,), the same for one copy of the corpus; 0 renames none.
        """
        kept = self.table.of(templates)
        is_kept = rng.random(len(kept.terms)) < KEPT
        drawn_rows, drawn = self._drawn(np.diff(kept.starts), rng)
        rows = np.concatenate([kept.rows()[is_kept], drawn_rows])
        counts = np.concatenate([kept.counts[is_kept].astype(np.int64), rng.geometric(1 / self.means[drawn])])
        places = np.concatenate([np.searchsorted(self.terms, kept.terms[is_kept]), drawn])
        return _table(rows, self._renamed(places, keys[rows]), counts, len(templates))

    def _drawn(self, sizes: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows (T,) and places (T,) of terms that are not of the template, for documents of `sizes` distinct terms."""
        richness = (1 - KEPT) * sizes / max(1.0, self.shares.sum())
        frequent, others = (np.flatnonzero(chosen) for chosen in (self.shares > _FREQUENT, self.shares <= _FREQUENT))
        # Some drawn terms are among the kept ones, so more are drawn, until the share is that of the corpus.
        of_frequent = self.shares[frequent] / (1 - KEPT * self.shares[frequent])
        stands = rng.random((len(sizes), len(frequent))) < np.minimum(1, richness[:, None] * of_frequent)
        rows, at = np.nonzero(stands)
        limits = np.cumsum(self.shares[others])
        if not len(others):
            return rows, frequent[at]
        n_others = rng.poisson(richness * limits[-1])
        places = np.minimum(np.searchsorted(limits, rng.random(int(n_others.sum())) * limits[-1]), len(others) - 1)
        return np.concatenate([rows, np.repeat(np.arange(len(sizes)), n_others)]), np.concatenate(
            [frequent[at], others[places]]
        )

    def _renamed(self, places: NDArray[np.int64], keys: NDArray[np.uint32]) -> NDArray[np.uint32]:
        terms = self.terms[places]
        mixed = (terms ^ keys) * np.uint32(2_654_435_761)  # Knuth's multiplicative hash
        is_renamed = (self.shares[places] < _RARE) & (mixed >> np.uint32(31) == 1) & (keys > 0)
        return np.where(is_renamed, terms ^ keys, terms)


@dataclass(frozen=True)
class TextModel:
    """The words and pairs of a corpus, from which those of made documents are drawn."""

    checksum: str  # of the corpus
    words: KindModel
    pairs: KindModel

    @classmethod
    def learn(cls, checksum: str, tables: WordTables) -> TextModel:
        """Learn a corpus from the term counts of its documents."""
        return cls(checksum, KindModel.learn(tables.words), KindModel.learn(tables.pairs))

    def draw(self, templates: NDArray[np.int64], keys: NDArray[np.uint32], seed: list[int]) -> WordTables:
        """The counts of made documents; `templates` can exceed N, and then wrap around."""
        rows = templates % self.words.table.n_documents
        words, pairs = (np.random.default_rng([*seed, kind]) for kind in (0, 1))
        return WordTables(self.words.draw(rows, keys, words), self.pairs.draw(rows, keys, pairs))


def _table(
    rows: NDArray[np.int64], terms: NDArray[np.uint32], counts: NDArray[np.int64], n_documents: int
) -> TermTable:
    """A table of counts; counts of the same document and term are added up."""
    keys, at = np.unique(rows << 32 | terms.astype(np.int64), return_inverse=True)
    sums = np.minimum(np.bincount(at, counts, len(keys)), MOST_COUNT).astype(np.uint16)
    starts = np.searchsorted(keys >> 32, np.arange(n_documents + 1))
    lengths = np.bincount(rows, counts, n_documents).astype(np.uint32)
    return TermTable((keys & 0xFFFFFFFF).astype(np.uint32), sums, starts, lengths)
