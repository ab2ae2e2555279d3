"""The documents of each term, in a file of a generation: by it words choose candidates. Scores nothing exactly.

A term is kept if two documents have it. Weights b_t(d) are those of the statistics at the time
of building, rounded to a byte; the scores of candidates come from the term counts in the shards.

Letters in shapes: N documents, V terms, P postings, Q terms of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from scipy.sparse import csc_array, csr_array

from engine.errors import IndexDamaged
from engine.store.durable import Checksum, check_mapped, write_durably
from engine.store.tensors import map_file, mapped_tensors
from engine.words.counts import TermTable, WordTables
from engine.words.likelihood import ALPHA, QueryTerms
from engine.words.statistics import Statistics, TermStatistics

_LARGEST = 16.0  # weight that the highest byte stands for; the square root leaves small ones their digits
_COLUMNS = ("terms", "starts", "documents", "weights")
_WEIGHTS = (_LARGEST * (np.arange(256) / 255) ** 2).astype(np.float32)


@dataclass(frozen=True)
class Postings:
    """The postings of words and of pairs over the documents of a generation."""

    ids: NDArray[np.int64]  # (N,) catalog ids, rising
    words: TermPostings
    pairs: TermPostings

    @classmethod
    def build(
        cls, ids: NDArray[np.int64], blocks: Callable[[], Iterable[WordTables]], statistics: Statistics
    ) -> Postings:
        """Turn the term counts of documents around.

        Args:
            ids: (N,) catalog ids, rising.
            blocks: gives the counts of the documents, in the order of the ids; called once for each kind.
            statistics: of the corpus.
        """
        words = _turned((block.words for block in blocks()), statistics.words, len(ids))
        pairs = _turned((block.pairs for block in blocks()), statistics.pairs, len(ids))
        return cls(ids, words, pairs)

    @property
    def n_bytes(self) -> int:
        """Size of the file, but for its header."""
        arrays = [getattr(one, name) for one in (self.words, self.pairs) for name in _COLUMNS]
        return int(self.ids.nbytes + sum(array.nbytes for array in arrays))

    def write(self, path: Path) -> Checksum:
        """Write the postings durably; the catalog names the file afterwards."""
        tensors: dict[str, NDArray[Any]] = {"ids": self.ids}
        for kind in ("words", "pairs"):
            postings: TermPostings = getattr(self, kind)
            tensors |= {f"{kind}_{name}": getattr(postings, name) for name in _COLUMNS}
        return write_durably(path, lambda unfinished: save_file(tensors, unfinished))

    @classmethod
    def open(cls, path: Path, expected: Checksum) -> Postings:
        """Check a file, then map it.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        content = map_file(path)
        check_mapped(content, path, expected)
        assert content is not None
        try:
            tensors = mapped_tensors(content)
            kinds = [TermPostings(*(tensors[f"{kind}_{name}"] for name in _COLUMNS)) for kind in ("words", "pairs")]
            return cls(tensors["ids"], *kinds)
        except (KeyError, ValueError) as error:
            raise IndexDamaged(
                f"{path} holds no postings ({error}); repair the index: longmatch repair INDEX"
            ) from error


@dataclass(frozen=True)
class TermPostings:
    """For each term of one kind the documents that have it."""

    terms: NDArray[np.uint32]  # (V,) rising
    starts: NDArray[np.int64]  # (V + 1,) first posting of each term, and P
    documents: NDArray[np.int32]  # (P,) rows of the documents, rising within a term
    weights: NDArray[np.uint8]  # (P,) b_t(d), see `_WEIGHTS`

    def scores(self, query: QueryTerms, n_documents: int) -> NDArray[np.float32]:
        """Estimates of s(q, d) (N,), a little off by the rounding of weights."""
        at = np.minimum(np.searchsorted(self.terms, query.terms), max(0, len(self.terms) - 1))
        kept = np.flatnonzero(self.terms[at] == query.terms) if len(self.terms) else np.empty(0, np.int64)
        # The columns are gathered by scipy; slices of a map are views, so nothing else of the file is read.
        columns = csc_array((self.weights, self.documents, self.starts), shape=(n_documents, len(self.terms)))[
            :, at[kept]
        ]
        weighted = csc_array((_WEIGHTS[columns.data], columns.indices, columns.indptr), shape=columns.shape)
        found: NDArray[np.float32] = weighted @ query.weights[kept].astype(np.float32)
        return found


def _turned(tables: Iterable[TermTable], statistics: TermStatistics, n_documents: int) -> TermPostings:
    parts = [(table.terms, _bytes(table, statistics), np.diff(table.starts)) for table in tables]
    terms = np.concatenate([np.empty(0, np.uint32), *(part[0] for part in parts)])
    weights = np.concatenate([np.empty(0, np.uint8), *(part[1] for part in parts)])
    sizes = np.concatenate([np.empty(0, np.int64), *(part[2] for part in parts)])
    del parts
    kept, columns, frequency = np.unique(terms, return_inverse=True, return_counts=True)
    is_kept = frequency > 1
    number = np.cumsum(is_kept) - 1
    chosen = is_kept[columns]
    rows = np.repeat(np.arange(n_documents, dtype=np.int32), sizes)[chosen]
    columns = number[columns[chosen]]
    starts = np.searchsorted(rows, np.arange(n_documents + 1))
    turned = csr_array((weights[chosen], columns, starts), shape=(n_documents, int(is_kept.sum()))).tocsc()
    return TermPostings(
        kept[is_kept], turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data.astype(np.uint8)
    )


def _bytes(table: TermTable, statistics: TermStatistics) -> NDArray[np.uint8]:
    rates = ALPHA / statistics.probabilities(table.terms)
    weights = np.log1p(rates * table.counts / np.maximum(1.0, table.lengths())[table.rows()])
    rounded: NDArray[np.uint8] = np.rint(255 * np.sqrt(np.minimum(weights, _LARGEST) / _LARGEST)).astype(np.uint8)
    return rounded
