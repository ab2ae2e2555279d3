"""Arbitrarily many documents made from real ones, as a stream of blocks, in memory that does not grow.

First come the real documents themselves, copy 0. Then copy 1 of the whole corpus,
copy 2, and so on, each in an order of its own; a stream that is cut off is the
beginning of every longer one. Copy c turns (see `turned`) document r by the angles

    turn * sqrt(2 (1 - s_r)) * g_c,p        in plane p

g_c standard normal, the same for all documents of the copy; s_r the similarity of
document r to its neighbours, so that the root is the distance to them. Documents that
are near each other have about the same s_r, so they turn together and stay near: topics
stay topics. A document without near neighbours moves far, one with many does not, and
both end about where their neighbours in a larger corpus would be; `turn`, which scales
the angles, is chosen by `calibrate`.

The words of a copy are drawn from the term statistics of a real corpus, see `texts`. Without
such a corpus a copy has the counts of its original, but each copy of the corpus has rare terms of
its own: so the vocabulary grows with the corpus, and no copy is found by all words of its original.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.growth.neighbours import distance, nearest_by_document, neighbours
from benchmarks.speed.growth.source import BLOCK_CHUNKS, Block, Source, runs
from benchmarks.speed.growth.texts import TextModel
from benchmarks.speed.records import Calibration
from engine.encoders.encoder import Vectors
from engine.errors import IndexMismatch
from engine.store.snapshot import Positions
from engine.words.apart import Apart
from engine.words.counts import TermTable, WordTables, counted
from engine.words.statistics import TermStatistics

_SAMPLE_CHUNKS = 20_000  # enough for the principal directions of the corpus
_RARE = 1e-4  # probability of a term, below which each copy of the corpus has its own
_ORDER, _ANGLES, _TERMS, _TEXTS = 1, 2, 3, 4  # keep the random numbers apart


@dataclass(frozen=True, slots=True)
class Order:
    """Which documents a stream holds, one after another."""

    originals: Positions  # (B,) rows of the source
    copies: NDArray[np.int64]  # (B,) rising from 0

    def __len__(self) -> int:
        return len(self.originals)


@dataclass(frozen=True)
class Growth:
    """A source, its planes and distances, and how far copies of its documents are turned; from `learn_growth`."""

    source: Source
    planes: Planes = field(repr=False)
    distances: NDArray[np.float32] = field(repr=False)  # (N,) to the neighbours of each document
    turn: float
    seed: int
    texts: TextModel | None = field(default=None, repr=False)  # from which words are drawn, in place of renamed copies

    def order(self, n_chunks: int) -> Order:
        """The shortest stream of at least `n_chunks` chunks."""
        n_copies = -(-n_chunks // int(self.source.n_chunks.sum()))
        originals = np.concatenate([self._order_of_copy(copy) for copy in range(n_copies)])
        copies = np.repeat(np.arange(n_copies), len(self.source))
        n_documents = int(np.searchsorted(np.cumsum(self.source.n_chunks[originals]), n_chunks)) + 1
        return Order(originals[:n_documents], copies[:n_documents])

    def _order_of_copy(self, copy: int) -> Positions:
        return np.random.default_rng([self.seed, _ORDER, copy]).permutation(len(self.source))

    def blocks(self, order: Order, first: int = 0, block_chunks: int = BLOCK_CHUNKS) -> Iterator[Block]:
        """The documents of a stream from number `first` on, with their vectors, about `block_chunks` chunks at once."""
        originals, copies = order.originals[first:], order.copies[first:]
        n_real = int(np.searchsorted(copies, 1))
        for run in runs(self.source.n_chunks[originals[:n_real]], block_chunks):
            yield self.source.read(originals[:n_real][run])
        for run in runs(self.source.n_chunks[originals[n_real:]], block_chunks):
            yield self._turned(self.source.read(originals[n_real:][run]), copies[n_real:][run])

    def _turned(self, block: Block, copies: NDArray[np.int64]) -> Block:
        angles = self.turn * self.distances[block.originals, None] * self._directions(copies)
        return replace(
            block,
            copies=copies,
            documents=turned(block.documents, self.planes, angles, np.ones(len(copies), np.int64)),
            sections=turned(block.sections, self.planes, angles, block.n_sections),
            chunks=turned(block.chunks, self.planes, angles, block.n_chunks),
        )

    def words(self, block: Block) -> WordTables:
        """The term counts of the documents of a block."""
        copies, at = np.unique(block.copies, return_inverse=True)
        drawn = [np.random.default_rng([self.seed, _TERMS, copy]).integers(1 << 32) for copy in copies.tolist()]
        keys = np.where(copies > 0, np.array(drawn), 0).astype(np.uint32)[at]
        if self.texts is not None and copies[-1]:
            return _all_body(self._drawn(self.texts, block, keys), block.n_sections)
        counts, statistics = self.source.words(block.originals), self.source.statistics
        words, pairs = _renamed(counts.words, statistics.words, keys), _renamed(counts.pairs, statistics.pairs, keys)
        return _all_body(WordTables(words, pairs), block.n_sections)

    def _drawn(self, texts: TextModel, block: Block, keys: NDArray[np.uint32]) -> WordTables:
        """The term counts of a block of made documents; the seed is that of its first one, wherever a run began."""
        first = [self.seed, _TEXTS, int(block.copies[0]), int(block.originals[0])]
        return texts.draw(block.originals, keys, first)

    def _directions(self, copies: NDArray[np.int64]) -> NDArray[np.float32]:
        """(B, P) standard normal, equal for documents of one copy."""
        found, at = np.unique(copies, return_inverse=True)
        drawn = [
            np.random.default_rng([self.seed, _ANGLES, copy]).standard_normal(self.planes.n, np.float32)
            for copy in found.tolist()
        ]
        return np.stack(drawn)[at]


def _all_body(counts: WordTables, n_sections: NDArray[np.int64]) -> WordTables:
    """The counts of documents all of whose sections are body text."""
    starts, no_groups = np.cumsum([0, *n_sections.tolist()], dtype=np.int64), np.zeros(len(n_sections) + 1, np.int64)
    by_kind = Apart(np.zeros(int(starts[-1]), np.uint8), starts, np.empty(0, np.uint8), no_groups, counted([]))
    return replace(counts, apart=by_kind)


def _renamed(table: TermTable, statistics: TermStatistics, keys: NDArray[np.uint32]) -> TermTable:
    """The same counts, with other ids for the rare terms of each document that has a key (B,) above 0."""
    rows = table.rows()
    is_rare = statistics.probabilities(table.terms) < _RARE
    terms = np.where(is_rare, table.terms ^ keys[rows], table.terms)
    order = np.lexsort((terms, rows))
    return TermTable(terms[order], table.counts[order], table.starts, table.occurrences)


def learn_growth(source: Source, *, turn: float = 1.0, seed: int = 0, texts: TextModel | None = None) -> Growth:
    """Learn the planes and distances of a source: compares a few chunks of each document with all others.

    Costs 8 N C D operations for N documents with C chunks in all.
    """
    if source.is_grown:
        raise IndexMismatch("the index was itself grown from another one; name that one")
    planes = principal_planes(_sampled_chunks(source, np.random.default_rng(seed)))
    near = nearest_by_document(source.blocks, len(source), seed)
    return Growth(source, planes, np.sqrt(2 * np.clip(1 - near, 0, None)), turn, seed, texts)


def _sampled_chunks(source: Source, rng: np.random.Generator) -> NDArray[np.float32]:
    """Chunk vectors of whole documents, which are drawn until there are enough."""
    order = rng.permutation(len(source))
    enough = int(np.searchsorted(np.cumsum(source.n_chunks[order]), _SAMPLE_CHUNKS)) + 1
    return source.read(np.sort(order[:enough])).chunks


@dataclass(frozen=True, slots=True)
class Planes:
    """An orthonormal basis: columns 2p and 2p + 1 span plane p; the mean direction, which never turns, is the last."""

    basis: Vectors  # (D, D) float32

    @property
    def n(self) -> int:
        """P: with an even D one direction beside the mean is left without a partner, that of least variance."""
        return (len(self.basis) - 1) // 2


def principal_planes(rows: Vectors) -> Planes:
    """Find the planes in which a corpus may be turned, from (R, D) unit rows, a sample of its chunk vectors."""
    width = rows.shape[1]
    sample = rows.astype(np.float64)
    mean = sample.mean(axis=0)
    length = np.linalg.norm(mean)
    direction = mean / length if length > 0 else np.eye(width)[0]
    rest = sample - np.outer(sample @ direction, direction)
    # The mean direction is given a variance below all others, which sorts it last.
    second_moments = rest.T @ rest / len(rest) - np.outer(direction, direction)
    _, directions = np.linalg.eigh(second_moments)  # rising
    return Planes(np.ascontiguousarray(directions[:, ::-1], np.float32))


def turned(rows: Vectors, planes: Planes, angles: NDArray[np.floating], counts: NDArray[np.int64]) -> Vectors:
    """Turn the vectors (R, D) of documents, each document by angles of its own; lengths stay.

    Costs 4 D^2 operations a row for the change of basis there and back, some 0.6 million at width 384, and a few
    more for the turn itself.

    Args:
        rows: (R, D) float32, the rows of each document beside each other.
        planes: from `principal_planes`.
        angles: (B, P) radians.
        counts: (B,) rows of each document; they sum to R.
    """
    coordinates: Vectors = rows @ planes.basis
    # A plane's two coordinates are one complex number, and a turn is a product.
    in_planes = coordinates[:, : 2 * planes.n].view(np.complex64)
    in_planes *= np.repeat(np.exp(1j * angles).astype(np.complex64), counts, axis=0)
    back: Vectors = (coordinates @ planes.basis.T).astype(np.float32, copy=False)
    return back


TURNS = (0.5, 0.8, 1.0, 1.15, 1.3, 1.4, 1.5, 1.7, 2.0)
MOST_DOCUMENTS = 800  # of the source that are compared
SAMPLED_DOCUMENTS = 256  # whose neighbours are searched for
_PART = 4  # factor by which the part is grown
_LEAST_DOCUMENTS = 4 * _PART


def calibrate(source: Source, seed: int) -> Calibration:
    """Choose the turn for a source, by growing a part of it."""
    if len(source) < _LEAST_DOCUMENTS:
        raise IndexMismatch(
            f"the index holds {len(source)} documents, at least {_LEAST_DOCUMENTS} are needed to grow a corpus from; "
            "name a larger one"
        )
    rng = np.random.default_rng(seed)
    whole = source.part(np.sort(rng.permutation(len(source))[:MOST_DOCUMENTS]))
    growth = learn_growth(whole.part(np.sort(rng.permutation(len(whole))[: len(whole) // _PART])), seed=seed)
    order = growth.order(int(whole.n_chunks.sum()))
    real = neighbours(whole.blocks, _sampled(len(whole), rng), seed)
    chosen = _sampled(len(order), rng)
    tried = {
        turn: neighbours(lambda turn=turn: replace(growth, turn=turn).blocks(order), chosen, seed)  # type: ignore[misc]
        for turn in TURNS
    }
    errors = {turn: round(distance(grown, real), 4) for turn, grown in tried.items()}
    best = min(errors, key=errors.__getitem__)
    return Calibration(best, errors[best], {str(turn): error for turn, error in errors.items()}, real, tried[best])


def _sampled(n_documents: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return rng.permutation(n_documents)[:SAMPLED_DOCUMENTS]
