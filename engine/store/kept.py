"""Chunks and term counts of documents as a search compares them: without the sections that it skips. Scores nothing.

Both are read from the shards. For documents whose kinds of sections are missing, or follow other rules than those of
this version, the texts are read instead: the same result, at the cost of segmenting them.

Letters in shapes: R documents, P of them with remaining chunks, C these chunks, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.scoring.similarity import Matches
from engine.store.gathering import UNCOUNTED, ranges
from engine.store.snapshot import Positions, Snapshot
from engine.text.section_kinds import section_bits
from engine.words.counts import KeptTable, TermCounts, WordTables, count_documents, kept_table
from engine.words.packing import PackedWords
from engine.words.segmenter import segmenter_of


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
    left = (_chunk_bits(snapshot, positions) & skip) == 0 if skip else np.ones(len(vectors), bool)
    if left.all():
        return TargetChunks(vectors, starts, every, None)
    counts = snapshot.roster.n_chunks[positions]
    n_left = np.bincount(np.repeat(every, counts)[left], minlength=len(positions))
    places = np.flatnonzero(n_left)
    numbers = (np.arange(len(vectors)) - np.repeat(starts, counts))[left]
    return TargetChunks(vectors[left], (np.cumsum(n_left) - n_left)[places], places, numbers)


def target_words(
    snapshot: Snapshot, positions: Positions, skip: int
) -> Iterator[tuple[NDArray[np.int64], TermCounts | KeptTable, TermCounts | KeptTable]]:
    """The term counts that a search compares: places among R documents, and their counts of words and of pairs.

    The arguments are those of `target_chunks`.
    """
    if not skip:
        for places, part in snapshot.word_parts(positions):
            yield places, part.words, part.pairs
        return
    for places, part in snapshot.word_parts(positions, apart=True):
        whole: WordTables | PackedWords = part
        if not snapshot.knows_kinds or part.apart is None:
            whole = _counted(snapshot, positions[places])
        apart = whole.apart
        assert apart is not None
        words = kept_table(whole.words, apart.counts.words, apart, skip)
        yield places, words, kept_table(whole.pairs, apart.counts.pairs, apart, skip)


def _counted(snapshot: Snapshot, positions: Positions) -> WordTables:
    """Term counts of documents, counted again from their texts."""
    documents = (document for document, _ in snapshot.documents(positions))
    return count_documents(segmenter_of(snapshot.language or "none"), documents, titles=snapshot.counts_titles)


def _chunk_bits(snapshot: Snapshot, positions: Positions) -> NDArray[np.uint8]:
    """(C,) the kind of section of each chunk, as a bit."""
    counts = snapshot.roster.n_chunks[positions]
    nowhere = np.full(int(counts.sum()), UNCOUNTED, np.uint8)
    found = snapshot.chunk_bits(positions) if snapshot.knows_kinds else nowhere
    starts = np.cumsum(counts) - counts
    lacking = np.flatnonzero(found[starts] == UNCOUNTED)
    documents = snapshot.documents(positions[lacking]) if len(lacking) else []
    for place, (document, _) in zip(lacking.tolist(), documents, strict=True):
        sections = snapshot.spans(int(positions[place]))[:, 0]
        found[ranges(starts[[place]], counts[[place]])] = section_bits(document)[sections]
    return found
