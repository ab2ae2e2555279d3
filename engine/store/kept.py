"""Chunks and term counts of documents as a search compares them: without the sections that it skips. Scores nothing.

Letters in shapes: R documents, P of them with remaining chunks, C these chunks, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.similarity import Matches
from engine.store.snapshot import Positions, Snapshot
from engine.words.counts import KeptTable, TermCounts, kept_table


@dataclass(frozen=True, slots=True)
class TargetChunks:
    """The chunks of documents, one document after another."""

    vectors: Vectors  # (C, D)
    starts: NDArray[np.int64]  # (P,) first row of each document, rising
    places: NDArray[np.int64]  # (P,) the documents, as places among the R
    numbers: NDArray[np.int64] | None  # (C,) number of each chunk in its document; None if all chunks remain

    def numbered(self, found: Matches) -> Matches:
        """Matches in the P documents, with each chunk numbered among all chunks of its document."""
        if self.numbers is None:
            return found
        at = np.maximum(self.starts + found.chunks, 0)
        return Matches(found.similarities, np.where(found.chunks < 0, -1, self.numbers[at]))


def target_chunks(snapshot: Snapshot, positions: Positions, skip: int) -> TargetChunks:
    """The chunks of documents that a search compares.

    Args:
        snapshot: holds the documents.
        positions: R documents with vectors.
        skip: bits of the kinds of sections that are left out, see `engine.text.section_kinds`.
    """
    vectors, starts = snapshot.chunk_vectors(positions)
    every = np.arange(len(positions))
    left = (snapshot.chunk_bits(positions) & skip) == 0 if skip else np.ones(len(vectors), bool)
    if left.all():
        return TargetChunks(vectors, starts, every, None)
    counts = snapshot.roster.n_chunks[positions]
    n_left = np.bincount(np.repeat(every, counts)[left], minlength=len(positions))
    places = np.flatnonzero(n_left)
    numbers = (np.arange(len(vectors)) - np.repeat(starts, counts))[left]
    return TargetChunks(vectors[left], (np.cumsum(n_left) - n_left)[places], places, numbers)


def target_words(
    snapshot: Snapshot, positions: Positions, skip: int
) -> tuple[NDArray[np.int64], TermCounts | KeptTable, TermCounts | KeptTable]:
    """The term counts that a search compares: places among R documents, and their counts of words and of pairs.

    The arguments are those of `target_chunks`, with at least one document.
    """
    places, counts = snapshot.packed_words(positions, apart=bool(skip))
    apart = counts.apart
    if apart is None:
        return places, counts.words, counts.pairs
    words = kept_table(counts.words, apart.counts.words, apart, skip)
    return places, words, kept_table(counts.pairs, apart.counts.pairs, apart, skip)
