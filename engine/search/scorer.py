"""Scores of documents from their stored vectors and term counts, which are read in blocks. Chooses no candidates.

Letters in shapes: I query chunks, R documents, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import step
from engine.scoring import evidence
from engine.scoring.breakdown import Prepared
from engine.store.gathering import TargetChunks
from engine.store.partitioned import Snapshot
from engine.store.snapshot import Positions
from engine.words.likelihood import scores_of_many

SCAN_CHUNKS = 2_048  # target chunks gathered at once; the cache holds these in float32 until they are multiplied
SCAN_BLOCK_DOCUMENTS = 2_048  # target documents whose term counts are gathered at once
_EXACT_AT_ONCE = 2  # up to this multiple of the documents requested, all are scored exactly at once
_SAME = 2e-5  # scores from products of different shapes differ by less


@dataclass(frozen=True, slots=True)
class Exact:
    """Documents with their exact scores, and the values that the scores are computed from."""

    positions: Positions  # (R,)
    scores: NDArray[np.float64]  # (R,) of float32 precision
    components: evidence.Components
    matches: evidence.Matches  # (I, R)

    def of(self, at: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Exact:
        """The scores of some documents, in the order given."""
        return Exact(self.positions[at], self.scores[at], self.components.of(at), self.matches.of(at))

    def without(self, positions: Positions) -> Exact:
        """The scores of all but some documents."""
        return self.of(~np.isin(self.positions, positions))


def join_exact(first: Exact, second: Exact) -> Exact:
    """Join the scores of different documents for the same query."""
    components = (
        np.concatenate([getattr(first.components, name), getattr(second.components, name)])
        for name in evidence.COMPONENTS
    )
    return Exact(
        np.concatenate([first.positions, second.positions]),
        np.concatenate([first.scores, second.scores]),
        evidence.Components(*components),
        first.matches.beside(second.matches),
    )


@dataclass(frozen=True, slots=True)
class Pool:
    """Documents with their scores and the components of these, which can be off in the last digits."""

    positions: Positions  # (R,)
    scores: NDArray[np.float64]
    components: evidence.Components
    error: float = _SAME  # of a score

    def of(self, at: NDArray[np.bool_]) -> Pool:
        """Some documents of the pool."""
        return Pool(self.positions[at], self.scores[at], self.components.of(at), self.error)


class Scan(Protocol):
    """Chunk vectors of a snapshot on a device, where all are compared with queries in one pass."""

    places: NDArray[np.int64]  # (N,) of each document of the snapshot among those on the device; -1 if it is not there
    error: float  # of a similarity there, at most

    def components(
        self, queries: Sequence[tuple[Vectors, evidence.Thresholds]], scoring: evidence.Scoring, skip: int
    ) -> NDArray[np.float64]:
        """The chunk components of all documents on the device for each query, see `engine.gpu`."""


class Scorer:
    """Scores documents of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, scoring: evidence.Scoring, scan_chunks: int | None = None, scan: Scan | None = None
    ) -> None:
        self._snapshot = snapshot
        self._scoring = scoring
        self._scan_chunks = scan_chunks or SCAN_CHUNKS
        self._scan = scan

    def pools(self, queries: Sequence[Prepared], positions: Positions) -> list[Pool]:
        """Documents with their scores for several queries, which share the pass over the vectors."""
        chunks = self.chunk_components(queries, positions)
        components = map(evidence.Components, chunks, *self._words(queries, positions))
        return [
            Pool(positions, self.combined(query, parts), parts, self._error(query))
            for query, parts in zip(queries, components, strict=True)
        ]

    def combined(self, prepared: Prepared, components: evidence.Components) -> NDArray[np.float64]:
        """The scores (R,) of some components."""
        return evidence.combine(components, prepared.weights, self._scoring.root)

    def _error(self, prepared: Prepared) -> float:
        """The most by which a score is off that has products of any shape, or of the device."""
        if self._scan is None or not prepared.weights["chunks"]:
            return _SAME
        return max(
            _SAME,
            2 * prepared.weights["chunks"] * evidence.most_difference(self._scan.error, prepared.limits, self._scoring),
        )

    def chunk_components(self, queries: Sequence[Prepared], positions: Positions) -> NDArray[np.float64]:
        """The components of chunks of several queries, a row each; they share the pass over the vectors."""
        chunks = np.zeros((len(queries), len(positions)))
        compared = [row for row, query in enumerate(queries) if query.weights["chunks"]]
        for skip in {queries[row].skip for row in compared}:
            rows = [row for row in compared if queries[row].skip == skip]
            left = np.arange(len(positions))
            if self._scan is not None:
                places = self._scan.places[positions]
                there, left = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
                sides = [(queries[row].vectors.chunks, queries[row].limits) for row in rows]
                chunks[np.ix_(np.array(rows), there)] = self._scan.components(sides, self._scoring, skip)[
                    :, places[there]
                ]
            for at, targets in self._targets(positions[left], skip):
                for row in rows:
                    chunks_of_query = queries[row].vectors.chunks
                    best, openings = evidence.best_chunks(chunks_of_query, targets.vectors, targets.starts)
                    chunks[row, left[at]] = evidence.chunk_component(best, openings, queries[row].limits, self._scoring)
        return chunks

    def word_components(
        self, prepared: Prepared, positions: Positions
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The components of words and of pairs, (R,) each; zeros without words."""
        words, pairs = self._words([prepared], positions)
        return words[0], pairs[0]

    def _words(
        self, queries: Sequence[Prepared], positions: Positions
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The components of words and of pairs of several queries, a row each; they share the pass over the counts."""
        words, pairs = np.zeros((2, len(queries), len(positions)))
        for skip in {query.skip for query in queries}:
            rows = [row for row, one in enumerate(queries) if one.skip == skip and one.words is not None]
            of_words = [one for row in rows if (one := queries[row].words) is not None]
            of_pairs = [one for row in rows if (one := queries[row].pairs) is not None]
            inverted = None if skip or not rows else self._snapshot.inverted_words(len(positions))
            if inverted is not None:
                for row, one, other in zip(rows, of_words, of_pairs, strict=True):
                    step()
                    of_all = np.zeros((2, self._snapshot.n_documents))
                    of_all[:, inverted.positions] = inverted.words.scores(one), inverted.pairs.scores(other)
                    words[row], pairs[row] = of_all[:, positions]
                continue
            for first in range(0, len(positions) if rows else 0, SCAN_BLOCK_DOCUMENTS):
                step()
                block = positions[first : first + SCAN_BLOCK_DOCUMENTS]
                places, words_of_block, pairs_of_block = self._snapshot.target_words(block, skip)
                at = np.ix_(np.array(rows), first + places)
                words[at] = scores_of_many(of_words, words_of_block)
                pairs[at] = scores_of_many(of_pairs, pairs_of_block)
        return words, pairs

    def top(self, prepared: Prepared, positions: Positions, n_most: int) -> tuple[Exact, int, int]:
        """The best of some documents, as `best_of` ranks them, and two counts.

        The counts are those of the documents with a score above 0, and with a chunk component above 0.
        """
        if len(positions) <= _EXACT_AT_ONCE * n_most:
            every = self.exact(prepared, positions)
            counts = every.scores, every.components.chunks
            best = self.ranked(every, n_most)
        else:
            (pool,) = self.pools([prepared], positions)
            counts = pool.scores, pool.components.chunks
            best = self.best_of(prepared, pool, n_most)
        return best, int(np.count_nonzero(counts[0])), int(np.count_nonzero(counts[1]))

    def best_of(self, prepared: Prepared, pool: Pool, n_most: int) -> Exact:
        """The best documents of a pool with a score above 0, ranked; only these are scored exactly."""
        is_hit = pool.scores > 0
        if not is_hit.any() or n_most < 1:
            return self.exact(prepared, np.empty(0, np.int64))
        # Only the best documents, and those that the last digits of a product could move there, are scored exactly.
        last = _nth_best(pool.scores[is_hit], n_most)
        near = pool.of(is_hit & (pool.scores >= last - pool.error))
        return self.ranked(self.exact(prepared, near.positions, near.components), n_most)

    def ranked(self, exact: Exact, n_most: int) -> Exact:
        """The best documents with a score above 0: by falling score, equal ones by doc_id."""
        places = np.flatnonzero(exact.scores > 0)
        if not len(places) or n_most < 1:
            return exact.of(slice(0))
        best = exact.of(places[exact.scores[places] >= _nth_best(exact.scores[places], n_most)])
        is_tied = len(set(best.scores.tolist())) < len(best.scores)
        names = np.array(self._snapshot.doc_ids_of(best.positions)) if is_tied else best.positions
        return best.of(np.lexsort((names, -best.scores))[:n_most])

    def exact(self, prepared: Prepared, positions: Positions, known: evidence.Components | None = None) -> Exact:
        """Scores as they are shown, from similarities that do not depend on the shapes of products.

        Args:
            known: components of the same documents, whose word components are used; computed by default.
        """
        matches = self._matches(prepared, positions)
        chunks = evidence.chunk_component(matches.similarities, matches.openings, prepared.limits, self._scoring)
        words = self.word_components(prepared, positions) if known is None else (known.words, known.pairs)
        components = evidence.Components(chunks, *words)
        rounded = self.combined(prepared, components).astype(np.float32)
        return Exact(positions, rounded.astype(np.float64), components, matches)

    def _matches(self, prepared: Prepared, positions: Positions) -> evidence.Matches:
        """The best chunks of documents for each query chunk, where they are above its threshold."""
        chunks, floor = prepared.vectors.chunks, prepared.limits.chunks
        matches = evidence.no_matches(len(chunks), len(positions))
        for at, targets in self._targets(positions, prepared.skip) if prepared.weights["chunks"] else ():
            best = evidence.best_matches(chunks, targets.vectors, targets.starts, floor)
            matches.put(at, targets.numbered(best))
        return matches

    def _targets(self, positions: Positions, skip: int) -> Iterator[tuple[NDArray[np.int64], TargetChunks]]:
        """The chunks to compare, some documents at a time: places in `positions`, and the chunks of these documents."""
        for at in self._blocks(positions):
            step()
            targets = self._snapshot.target_chunks(positions[at], skip)
            if len(targets.places):
                yield at[targets.places], targets

    def _blocks(self, positions: Positions) -> list[NDArray[np.int64]]:
        """Places in `positions` of the documents with vectors, in runs of about as many chunks as memory is to hold."""
        places = np.flatnonzero(self._snapshot.has_vectors[positions])
        ends = np.cumsum(self._snapshot.locations.n_chunks[positions[places]])
        block = (ends - 1) // self._scan_chunks
        return np.split(places, np.flatnonzero(np.diff(block)) + 1) if len(places) else []


def _nth_best(scores: NDArray[np.float64], n: int) -> float:
    """The n-th largest of some scores; the smallest if there are fewer."""
    at = min(n, len(scores)) - 1
    return float(-np.partition(-scores, at)[at])
