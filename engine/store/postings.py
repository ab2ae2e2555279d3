"""The documents of each term, in a file of a generation, by which words choose candidates. No exact scores.

Weights b_t(d) are those of the statistics at the time of building, rounded to a byte. The smallest
weights are left out, up to a share `LEFT_OUT` of the sum of all weights: they belong to terms that
many documents have, are most of the postings, and hardly change the candidates. A block
keeps a term that at least two of its documents still have. The scores of candidates come from
the term counts in the shards.

Letters in shapes: N documents, V terms, P postings, Q terms of a query.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import damaged_file
from engine.store.durable import Checksum, check_mapped, write_durably
from engine.store.shards import map_file, mapped_tensors, save_file
from engine.words.counts import TermTable, WordTables
from engine.words.likelihood import ALPHA, QueryTerms, Statistics, TermStatistics

# Without these weights, 9.9 of the 10 best documents by words or by pairs are still among the best 50.
LEFT_OUT = 0.08
MOST_LEFT_OUT = 0.5  # weight from which on none is left out
WORD_POSTINGS_FOLDER = "words"  # in the folder of generations, for documents that no generation covers
BLOCK_DOCUMENTS = 1 << 16  # row numbers in a block fit into two bytes
_LARGEST = 16.0  # weight of byte 255; the square root keeps the precision of small weights
_STEP = _LARGEST / 255**2  # weight = _STEP * byte**2
_COLUMNS = ("terms", "starts", "documents", "weights")
_KINDS = ("words", "pairs")

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Postings:
    """The postings of words and of pairs over the documents of a generation, in blocks of documents."""

    ids: NDArray[np.int64]  # (N,) catalog ids, rising
    words: tuple[TermPostings, ...]  # one for each block
    pairs: tuple[TermPostings, ...]
    block_documents: int = BLOCK_DOCUMENTS  # of each block but the last

    @classmethod
    def build(
        cls,
        ids: NDArray[np.int64],
        blocks: Callable[[], Iterable[WordTables]],
        statistics: Statistics,
        block_documents: int = BLOCK_DOCUMENTS,
    ) -> Postings:
        """Invert the term counts of documents, with the memory of one block.

        Args:
            ids: (N,) catalog ids, rising.
            blocks: returns the counts of the documents, in the order of the ids; called twice for each kind.
        """
        kinds = []
        for kind in _KINDS:
            of_kind: TermStatistics = getattr(statistics, kind)
            least = _least_byte((getattr(block, kind) for block in blocks()), of_kind)
            tables = (getattr(block, kind) for block in blocks())
            kinds.append(tuple(_turned(tables, of_kind, least, block_documents)))
        return cls(ids, kinds[0], kinds[1], block_documents)

    def scores(self, words: QueryTerms, pairs: QueryTerms) -> tuple[Scores, Scores]:
        """Estimates of s(q, d), (N,) for words and (N,) for pairs; too low by the weights that are left out."""
        return self._scores(self.words, words), self._scores(self.pairs, pairs)

    def _scores(self, blocks: tuple[TermPostings, ...], query: QueryTerms) -> Scores:
        estimates = np.zeros(len(self.ids), np.float32)
        for number, block in enumerate(blocks):
            of_block = estimates[number * self.block_documents : (number + 1) * self.block_documents]
            of_block[:] = block.scores(query, len(of_block))
        return estimates

    def _tensors(self) -> dict[str, NDArray[Any]]:
        tensors: dict[str, NDArray[Any]] = {"ids": self.ids, "block_documents": np.array([self.block_documents])}
        for kind in _KINDS:
            for number, block in enumerate(getattr(self, kind)):
                tensors |= {f"{kind}_{name}_{number}": getattr(block, name) for name in _COLUMNS}
        return tensors

    def write(self, path: Path) -> Checksum:
        """Write the postings durably; the catalog names the file afterwards."""
        return write_durably(path, lambda unfinished: save_file(self._tensors(), unfinished))

    @classmethod
    def open(cls, path: Path, expected: Checksum) -> Postings:
        """Check a file, then map it.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        return cls.parse(map_file(path), path, expected)

    @classmethod
    def parse(cls, content: mmap.mmap | None, path: Path, expected: Checksum) -> Postings:
        """Check a mapped file, then view it as postings; errors as in `open`."""
        there = check_mapped(content, path, expected)
        try:
            return _parsed(mapped_tensors(there))
        except (KeyError, ValueError) as error:
            raise damaged_file(f"{path} holds no postings ({error})") from error


@dataclass(frozen=True)
class TermPostings:
    """For each term of one kind, the documents of one block that have it."""

    terms: NDArray[np.uint32]  # (V,) rising
    starts: NDArray[np.integer]  # (V + 1,) first posting of each term, and P
    documents: NDArray[np.integer]  # (P,) rows of the documents in the block, rising within a term
    weights: NDArray[np.uint8]  # (P,) b_t(d) is their square times `_STEP`

    def scores(self, query: QueryTerms, n_documents: int) -> Scores:
        """Estimates of s(q, d) (n_documents,)."""
        at = np.minimum(np.searchsorted(self.terms, query.terms), max(0, len(self.terms) - 1))
        shared = np.flatnonzero(self.terms[at] == query.terms) if len(self.terms) else np.empty(0, np.int64)
        if not len(shared):
            return np.zeros(n_documents, np.float32)
        starts, stops = self.starts[at[shared]].astype(np.int64), self.starts[at[shared] + 1].astype(np.int64)
        stretches = list(zip(starts.tolist(), stops.tolist(), strict=True))
        documents = np.concatenate([self.documents[start:stop] for start, stop in stretches])
        weights = np.concatenate([self.weights[start:stop] for start, stop in stretches]).astype(np.float32)
        weights *= weights
        weights *= np.repeat((_STEP * query.weights[shared]).astype(np.float32), stops - starts)
        sums = np.zeros(n_documents, np.float32)
        np.add.at(sums, documents, weights)
        return sums


def _parsed(tensors: Mapping[str, NDArray[Any]]) -> Postings:
    ids = tensors["ids"]
    block_documents = int(tensors["block_documents"][0])
    n_blocks = -(-len(ids) // block_documents)
    words, pairs = (
        tuple(TermPostings(*(tensors[f"{kind}_{name}_{number}"] for name in _COLUMNS)) for number in range(n_blocks))
        for kind in _KINDS
    )
    return Postings(ids, words, pairs, block_documents)


@dataclass(frozen=True, slots=True)
class _PostingPart:
    """Postings in the order of documents, before they are sorted by term."""

    terms: NDArray[np.uint32]  # (n,)
    rows: NDArray[np.int64]  # (n,) rising
    weights: NDArray[np.uint8]  # (n,)

    def of(self, chosen: slice) -> _PostingPart:
        return _PostingPart(self.terms[chosen], self.rows[chosen], self.weights[chosen])


def _least_byte(tables: Iterable[TermTable], statistics: TermStatistics) -> int:
    """The byte of the smallest weight that is kept."""
    counts = np.zeros(256)
    for table in tables:
        counts += np.bincount(_bytes(table, statistics), minlength=256)
    sums = np.cumsum(counts * np.arange(256) ** 2)
    n_left_out = int(np.searchsorted(sums, LEFT_OUT * sums[-1], side="right"))
    return min(n_left_out, round(float(np.sqrt(MOST_LEFT_OUT / _STEP))))


def _turned(tables: Iterable[TermTable], statistics: TermStatistics, least: int, size: int) -> Iterator[TermPostings]:
    """The postings of blocks of `size` documents, one block after another."""
    waiting: list[_PostingPart] = []
    first = n_read = 0
    for table in tables:
        weights = _bytes(table, statistics)
        is_heavy = weights >= least
        waiting.append(_PostingPart(table.terms[is_heavy], table.rows()[is_heavy] + n_read, weights[is_heavy]))
        n_read += table.n_documents
        while n_read >= first + size:
            last = waiting.pop()
            split = int(np.searchsorted(last.rows, first + size))
            yield _block([*waiting, last.of(slice(split))], first)
            waiting, first = [last.of(slice(split, None))], first + size
    if n_read > first:
        yield _block(waiting, first)


def _bytes(table: TermTable, statistics: TermStatistics) -> NDArray[np.uint8]:
    """The weights (T,) of all terms as bytes."""
    rates = ALPHA / statistics.probabilities(table.terms)
    weights = np.log1p(rates * table.counts / np.maximum(1.0, table.lengths())[table.rows()])
    rounded: NDArray[np.uint8] = np.rint(np.sqrt(np.minimum(weights, _LARGEST) / _STEP)).astype(np.uint8)
    return rounded


def _block(parts: list[_PostingPart], first: int) -> TermPostings:
    terms = np.concatenate([part.terms for part in parts])
    rows = np.concatenate([(part.rows - first).astype(np.uint16) for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    order = np.argsort(terms, kind="stable")  # documents stay in their order
    terms, rows, weights = terms[order], rows[order], weights[order]
    del order
    starts = np.flatnonzero(np.concatenate([[True], terms[1:] != terms[:-1]])) if len(terms) else np.empty(0, np.int64)
    sizes = np.diff(starts, append=len(terms))
    is_kept = np.repeat(sizes > 1, sizes)
    several = sizes[sizes > 1]
    return TermPostings(
        terms[starts[sizes > 1]],
        np.concatenate([np.zeros(1, np.int64), np.cumsum(several)]).astype(np.uint32),
        rows[is_kept],
        weights[is_kept],
    )
