"""Ranked lists of the documents nearest to each query chunk: by scanning, or by FAISS. Scores nothing.

Letters in shapes: I query chunks, N documents of the index, R length of a list, D width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.deepening import LAST_DEPTH, document_lists
from engine.encoders.encoder import Vectors
from engine.scoring.lists import RankedLists, empty_lists, merge
from engine.scoring.similarity import nearest_documents
from engine.store.snapshot import OpenGeneration, Positions, Snapshot

SCAN_BLOCK_CHUNKS = 32_768  # target chunks gathered at once in an exact scan
FIRST_DEPTH = 128  # chunks asked of the ANN index for each query chunk
SCAN_BELOW_CHUNKS = 20_000  # a filter that leaves fewer is scanned exactly
SCAN_BELOW_SHARE = 0.05
FILTER_BELOW_SHARE = 0.5  # where FAISS is told what may be found; above, what it finds is sifted


class Neighbours:
    """Builds lists over one snapshot."""

    def __init__(
        self, snapshot: Snapshot, generation: OpenGeneration | None = None, scan_chunks: int | None = None
    ) -> None:
        """Look into a snapshot.

        Args:
            snapshot: stays open meanwhile.
            generation: one that is not published yet, in place of the snapshot's own.
            scan_chunks: target chunks in memory at one time in a scan, `SCAN_BLOCK_CHUNKS` by default.
        """
        self.snapshot = snapshot
        self._candidate = generation
        self._scan_chunks = scan_chunks

    def lists(
        self, queries: Vectors, allowed: NDArray[np.bool_], length: int, *, exact: bool
    ) -> tuple[RankedLists, bool]:
        """The documents nearest to each query chunk, and whether no other can be nearer.

        Args:
            queries: (I, D).
            allowed: (N,) the documents that may be found.
            length: R.
            exact: scan all vectors, whatever index there is.
        """
        generation = None if exact or self._is_filtered_hard(allowed) else self._generation
        if generation is None:
            return self.scan(queries, np.flatnonzero(allowed), length), True
        fresh = self.snapshot.is_fresh(generation.through_chunk)
        scanned = self.scan(queries, np.flatnonzero(allowed & fresh), length)
        covered = self._covered(generation, queries, allowed & ~fresh, length)
        return merge(covered, scanned, length), generation.is_exact

    @property
    def _generation(self) -> OpenGeneration | None:
        return self._candidate or self.snapshot.generation

    def _is_filtered_hard(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether so little may be found that scanning it is quicker than searching past the rest."""
        n_left_out = len(allowed) - int(np.count_nonzero(allowed))
        if n_left_out <= 1:
            return False
        n_chunks = int(self.snapshot.roster.n_chunks[allowed].sum())
        return n_chunks <= max(SCAN_BELOW_CHUNKS, SCAN_BELOW_SHARE * self.snapshot.n_chunks)

    def _covered(
        self, generation: OpenGeneration, queries: Vectors, allowed: NDArray[np.bool_], length: int
    ) -> RankedLists:
        n_documents = int(np.count_nonzero(allowed))
        if not n_documents:
            return empty_lists(len(queries))
        return document_lists(_Asked(self.snapshot, generation, allowed), queries, length, n_documents)

    def scan(self, queries: Vectors, positions: Positions, length: int) -> RankedLists:
        """Exact lists by multiplying with every chunk of the given documents."""
        lists = empty_lists(len(queries))
        for block in self.blocks(positions):
            vectors, starts = self.snapshot.chunk_vectors(block)
            lists = merge(lists, nearest_documents(queries, vectors, starts, block, length), length)
        return lists

    def blocks(self, positions: Positions) -> list[Positions]:
        """Cut documents into runs of about as many chunks as may be in memory."""
        ends = np.cumsum(self.snapshot.roster.n_chunks[positions])
        block = (ends - 1) // (self._scan_chunks or SCAN_BLOCK_CHUNKS)
        return np.split(positions, np.flatnonzero(np.diff(block)) + 1) if len(positions) else []


class _Asked:
    """A generation as `engine.deepening` asks it, so that documents left out cost no recall.

    Of n vectors a share s may be found. FAISS looks into 1 / s as many lists, so that as
    many vectors that count are compared as without a filter. Where s is small, it is told
    which count; else it is asked for 1 / s as many chunks, and what does not is dropped.
    """

    def __init__(self, snapshot: Snapshot, generation: OpenGeneration, allowed: NDArray[np.bool_]) -> None:
        self._snapshot = snapshot
        self._ann = generation.ann
        self._allowed = allowed
        share = int(snapshot.roster.n_chunks[allowed].sum()) / max(1, self._ann.n_vectors)
        self._chunks: NDArray[np.bool_] | None = None
        self._nprobe = min(self._ann.n_lists, round(self._ann.nprobe / max(share, 1 / self._ann.n_vectors)))
        self.first_depth = int(FIRST_DEPTH / max(share, FIRST_DEPTH / LAST_DEPTH))
        if share < FILTER_BELOW_SHARE and self._ann.can_filter:
            self._chunks = snapshot.chunks_of(allowed)
            self.first_depth = FIRST_DEPTH
        n_vectors = self._ann.n_vectors
        self.last_depth = n_vectors if generation.is_exact else min(n_vectors, LAST_DEPTH)
        self.is_coded = not generation.is_exact
        self.is_bounded = self._ann.n_lists > 0

    def search(self, queries: Vectors, depth: int) -> tuple[NDArray[np.int64], Vectors]:
        return self._ann.search(queries, depth, allowed=self._chunks, nprobe=self._nprobe)

    def documents(self, ids: NDArray[np.int64]) -> Positions:
        positions = self._snapshot.documents_of_chunks(ids)
        return np.where(self._allowed[positions], positions, -1)

    def vectors(self, ids: NDArray[np.int64], documents: Positions) -> Vectors:
        return self._snapshot.chunks_by_id(ids, documents)
