"""The real documents that others are made from: those of an index, read in blocks.

Letters in shapes: N documents of the source, B of a block, S their sections, C their chunks, D width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import IndexMismatch
from engine.store.snapshot import Positions, Snapshot
from engine.words.counts import WordTables
from engine.words.statistics import Statistics

COPY_MARK = "#copy"  # in the names of documents that were made
BLOCK_CHUNKS = 32_768  # 50 MB of float32 at width 384


@dataclass(frozen=True, slots=True)
class Block:
    """Some documents, their vectors one after another."""

    originals: Positions  # (B,) rows of the source
    copies: NDArray[np.int64]  # (B,) 0 for the document itself, from 1 on for those made from it
    documents: Vectors  # (B, D) float32
    sections: Vectors  # (S, D)
    chunks: Vectors  # (C, D)
    n_sections: NDArray[np.int64]  # (B,)
    n_chunks: NDArray[np.int64]  # (B,)
    spans: NDArray[np.int32]  # (C, 4) section in its document, start, stop, tokens

    @property
    def starts(self) -> NDArray[np.int64]:
        """(B,) the row of `chunks` at which each document begins."""
        return np.cumsum(self.n_chunks) - self.n_chunks


class Source:
    """All documents of an open index, or those at some rows."""

    def __init__(self, snapshot: Snapshot, rows: Positions | None = None) -> None:
        self._snapshot = snapshot
        self._rows = np.arange(snapshot.n_documents) if rows is None else rows
        if not len(self._rows):
            raise IndexMismatch(f"{snapshot.folder} holds no document, at least 1 is needed; index some first")

    def __len__(self) -> int:
        """The number of documents, N."""
        return len(self._rows)

    @property
    def encoder(self) -> dict[str, str | int]:
        """Name, fingerprint and width of the encoder of the index."""
        encoder: dict[str, str | int] = self._snapshot.meta["encoder"]
        return encoder

    @property
    def language(self) -> str:
        """The language by which words are segmented; an index without documents has none."""
        if self._snapshot.language is None:
            raise IndexMismatch(f"{self._snapshot.folder} holds no document; name another index")
        return self._snapshot.language

    @property
    def statistics(self) -> Statistics:
        """The term statistics of the reference."""
        return self._snapshot.reference.statistics

    def words(self, originals: Positions) -> WordTables:
        """The term counts of documents, in the order given."""
        return self._snapshot.words(self._rows[originals])

    @cached_property
    def names(self) -> list[str]:
        """The doc_ids of all documents that count."""
        names = self._snapshot.doc_ids()
        return [names[row] for row in self._rows]

    @property
    def is_grown(self) -> bool:
        """Whether some of its documents were made from others."""
        return any(COPY_MARK in name for name in self.names)

    @cached_property
    def n_chunks(self) -> NDArray[np.int64]:
        """(N,) chunks of each document."""
        return self._snapshot.locations.n_chunks[self._rows]

    @cached_property
    def checksum(self) -> str:
        """First 12 hex digits of a SHA-256 over the encoder ("" for an index of words alone), names and contents."""
        hashes = self._snapshot.content_hashes()
        fingerprint = str(self._snapshot.meta.get("encoder", {}).get("fingerprint", ""))
        lines = [fingerprint, *(f"{name} {hashes[name]}" for name in self.names)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    def part(self, chosen: Positions) -> Source:
        """Some of its documents as a source of their own."""
        return Source(self._snapshot, self._rows[chosen])

    def blocks(self) -> Iterator[Block]:
        """All its documents, in order, with their vectors."""
        for run in runs(self.n_chunks):
            yield self.read(np.arange(len(self))[run])

    def read(self, originals: Positions) -> Block:
        """Documents with all their vectors, in the order given."""
        rows = self._rows[originals]
        chunks, _ = self._snapshot.chunk_vectors(rows)
        sections = [self._snapshot.section_vectors(row) for row in rows.tolist()]
        return Block(
            originals=originals,
            copies=np.zeros(len(rows), np.int64),
            documents=self._snapshot.document_index.rows[rows].astype(np.float32),
            sections=np.concatenate(sections),
            chunks=chunks,
            n_sections=self._snapshot.locations.n_sections[rows],
            n_chunks=self._snapshot.locations.n_chunks[rows],
            spans=np.concatenate([self._snapshot.spans(row) for row in rows.tolist()]),
        )


def runs(n_chunks: NDArray[np.int64], block_chunks: int = BLOCK_CHUNKS) -> Iterator[slice]:
    """Cut documents that follow each other into runs of about `block_chunks` chunks; no run is empty."""
    block = (np.cumsum(n_chunks) - 1) // block_chunks
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(n_chunks)]
    yield from (slice(first, stop) for first, stop in pairwise(edges) if stop > first)
